import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { anEmailTemplate, anSms, aPush, refused, templatesOf } from '../../test/templates.ts'
import { told } from '../../test/users.ts'
import { LANGUAGES, textInLanguage } from './language.ts'

let app: TestApp
let templates: ReturnType<typeof templatesOf>
beforeAll(async () => {
  app = await testApp()
  templates = templatesOf(app)
})
afterAll(() => app.close())

const web = (field: string) => `${field} must be an http or https address`
const address = (field: string) => `${field} must be an email address`
const oneLine = (field: string) => `${field} must be one line, without control characters`

describe('languages', () => {
  test('every language of messages is taken, in contents, headings and subtitle', async () => {
    const texts = Object.fromEntries(LANGUAGES.map((code) => [code, `in ${code}`]))
    const { status, body } = await templates.create(aPush({ contents: texts, headings: texts, subtitle: texts }))
    expect(status).toBe(200)
    expect(body.content).toMatchObject({ contents: texts, headings: texts, subtitle: texts })
  })

  test.each(['xx', 'EN', 'en-US', '', 'constructor'])('%j is none', async (code) => {
    const contents = JSON.parse(`{"en": "Hello", ${JSON.stringify(code)}: "x"}`)
    const { status, body } = await templates.create(aPush({ contents }))
    expect({ status, errors: body.errors }).toEqual({
      status: 400,
      errors: [expect.stringContaining(`contents: "${code}" is not one of the languages en, ar`)],
    })
  })

  test('English is what everybody else gets, so it must be there', async () => {
    const missing = refused('Message Notifications must have English language content')
    for (const contents of [{}, { de: 'Hallo' }, null, undefined, { en: '' }]) {
      expect(told(await templates.create(aPush({ contents })))).toEqual(missing)
      expect(told(await templates.create(anSms({ contents })))).toEqual(missing)
    }
    expect((await templates.create(aPush({ contents: null, content_available: true }))).status).toBe(200)
  })

  test.each([
    ['de', 'de'],
    ['DE', 'de'],
    ['de-AT', 'de'],
    ['zh-Hant', 'zh-Hant'],
    ['zh_hant_TW', 'zh-Hant'],
    ['zh-TW', 'zh-Hant'],
    ['zh', 'zh'],
    ['zh-CN', 'zh'],
    ['fr', 'en'],
    [null, 'en'],
    ['', 'en'],
  ])('a person whose language is %j reads %s', (language, code) => {
    const texts = { en: 'en', de: 'de', zh: 'zh', 'zh-Hant': 'zh-Hant' }
    expect(textInLanguage(texts, language)).toBe(code)
  })

  test.each([
    ['zh', 'zh-Hans zh-Hant nb he id', 'zh-Hans'],
    ['zh-CN', 'zh-Hans zh-Hant zh', 'zh-Hans'],
    ['zh-SG', 'zh-Hans zh-Hant', 'zh-Hans'],
    ['zh_Hans_HK', 'zh-Hans zh-Hant', 'zh-Hans'],
    ['zh-TW', 'zh-Hans zh-Hant', 'zh-Hant'],
    ['zh-HK', 'zh-Hans zh-Hant', 'zh-Hant'],
    ['zh-MO', 'zh-Hans zh-Hant', 'zh-Hant'],
    ['zh-Hant', 'zh', 'zh'],
    ['zh-TW', 'zh-Hans', 'en'],
    ['zh', 'zh-Hant', 'zh-Hant'],
    ['no', 'nb', 'nb'],
    ['nb-NO', 'no', 'no'],
    ['no', 'nb no', 'no'],
    ['iw', 'he', 'he'],
    ['he-IL', 'iw', 'iw'],
    ['in', 'id', 'id'],
    ['id', 'in', 'in'],
    ['pt-BR', 'pt', 'pt'],
    ['pt-BR', 'es', 'en'],
    ['constructor', 'de', 'en'],
  ])('%s finds in "%s" what is in %s', (language, codes, code) => {
    const texts = Object.fromEntries(['en', ...codes.split(' ')].map((it) => [it, it]))
    expect(textInLanguage(texts, language)).toBe(code)
  })
})

describe('push', () => {
  test.each([
    { url: 'https://example.com/a?b=c#d' },
    { url: 'myapp://open/this' },
    { url: 'https://example.com/{{ user.external_id }}' },
    { web_url: 'http://example.com', app_url: 'myapp://x' },
    { big_picture: 'picture_in_the_app', large_icon: 'https://example.com/x.png' },
    {
      buttons: [
        { id: 'a', text: 'A' },
        { id: 'b', text: 'B', icon: 'ic_b' },
        { id: 'c', text: 'C' },
      ],
    },
    {
      web_buttons: [
        { id: 'a', text: 'A', url: 'https://example.com' },
        { id: 'b', text: 'B' },
      ],
    },
    { data: { a: 1, nested: { b: ['{{ not rendered }}'] } } },
    { ttl: 0, priority: 5 },
    { ttl: 2_419_200, priority: 10 },
    { priority: 1 },
    { android_group_message: '$[notif_count] new' },
    { android_group_message: { en: '$[notif_count] new', de: '$[notif_count] neue' } },
    {
      apns_alert: {
        'loc-key': 'GREETING',
        'loc-args': ['Ann', 'Bob'],
        'title-loc-key': 'TITLE',
        'launch-image': 'x.png',
      },
    },
    { collapse_id: 'x'.repeat(64), android_accent_color: 'FF00FF00', ios_relevance_score: 0.5 },
    { ios_badgeType: 'SetTo', ios_badgeCount: 1, ios_interruption_level: 'time_sensitive' },
    { ios_attachments: { id1: 'https://example.com/a.jpg' }, apns_alert: { title: 'T {{ x }}' } },
    { huawei_msg_type: 'data', huawei_badge_set_num: 99, huawei_badge_add_num: 1, huawei_visibility: -1 },
  ])('%j is taken and answered as given', async (fields) => {
    const { status, body } = await templates.create(aPush(fields))
    expect({ status, errors: body.errors }).toEqual({ status: 200, errors: undefined })
    expect(body.content).toMatchObject(fields)
  })

  test.each([
    [{ url: 'javascript:alert(1)' }, 'url must be an address such as https://example.com'],
    [{ url: 'example.com' }, 'url must be an address such as https://example.com'],
    [{ url: 'https://' }, 'url must be an address such as https://example.com'],
    [{ app_url: 'data:text/html,x' }, 'app_url must be an address such as https://example.com'],
    [{ url: 'https://example.com/\r\nX: y' }, 'url must be an address such as https://example.com'],
    [{ web_url: 'myapp://x' }, web('web_url')],
    [{ global_image: '/etc/passwd' }, web('global_image')],
    [{ chrome_web_icon: 'icon' }, web('chrome_web_icon')],
    [
      { big_picture: 'file:///etc/passwd' },
      'big_picture must be an http or https address, or the name of a picture in the app',
    ],
    [{ web_buttons: [{ id: 'a', text: 'A', url: 'javascript:x' }] }, web('web_buttons[0].url')],
    [{ buttons: Array(4).fill({ id: 'a', text: 'A' }) }, 'buttons must have at most 3 items'],
    [{ web_buttons: Array(3).fill({ id: 'a', text: 'A' }) }, 'web_buttons must have at most 2 items'],
    [{ buttons: [{ id: 'a' }] }, 'buttons[0].text is required'],
    [{ data: { x: 'x'.repeat(2041) } }, 'data must have at most 2048 bytes'],
    [{ data: { x: 'é'.repeat(1021) } }, 'data must have at most 2048 bytes'],
    [{ data: 'x' }, 'data must be an object or null'],
    [{ ttl: -1 }, 'ttl must be at least 0'],
    [{ ttl: 2_419_201 }, 'ttl must be at most 2419200'],
    [{ ttl: '60' }, 'ttl must be an integer or null'],
    [{ priority: 0 }, 'priority must be at least 1'],
    [{ priority: 11 }, 'priority must be at most 10'],
    [{ priority: 5.5 }, 'priority must be an integer or null'],
    [{ priority: 'high' }, 'priority must be an integer or null'],
    [{ android_group_message: 7 }, 'android_group_message must be a string, an object or null'],
    [{ collapse_id: 'x'.repeat(65) }, 'collapse_id must have at most 64 characters'],
    [{ ios_badgeType: 'More' }, 'ios_badgeType must be "None", "SetTo", "Increase" or null'],
    [{ ios_relevance_score: 1.1 }, 'ios_relevance_score must be at most 1'],
    [{ huawei_badge_add_num: 0 }, 'huawei_badge_add_num must be at least 1'],
    [{ contents: 'Hello' }, 'contents must be an object or null'],
    [{ contents: { en: 5 } }, 'contents.en must be a string'],
    [{ isIos: 'true' }, 'isIos must be true or false or null'],
    [
      { isEmail: true, isSMS: true, email_subject: 'x', email_body: 'x' },
      'Platforms You may only send to one delivery channel at a time. Make sure you are only including one of push platforms, Email, or SMS.',
    ],
    [{ dynamic_content: '{' }, 'dynamic_content must be a text that holds a JSON object, or CSV'],
    [
      { dynamic_content: '5' },
      'dynamic_content must be a JSON object, or CSV with a line of column names and a line for each row',
    ],
    [
      { dynamic_content: 'a,b' },
      'dynamic_content must be a JSON object, or CSV with a line of column names and a line for each row',
    ],
    [
      { dynamic_content: 'a,first name\nx,y' },
      'dynamic_content has a column without a proper name: column 2 must be of letters, digits, "_" and "-"',
    ],
    [{ dynamic_content: 'a,b,b\nx,y,z' }, 'dynamic_content has two columns b'],
    [{ dynamic_content: 'a,b\n\nx,y,z' }, 'dynamic_content has more cells than columns in line 3'],
    [
      { dynamic_content: 'a,b\n"x\nx",y\n,z' },
      'dynamic_content has no name for the row in line 4: its first cell is empty',
    ],
    [{ dynamic_content: 'a,b\nx,y\nx,z' }, 'dynamic_content has two rows of the same name: see line 3'],
    [
      { dynamic_content: 'a,b\nx,5" tall' },
      'dynamic_content is not CSV: a cell with quotes in it must stand in quotes, and its own be written twice',
    ],
    [
      { contents: { en: '{{ data_feed.weather.now }}' } },
      'contents.en: line 1, column 4: data_feed is not available: this server fetches no feeds. Send what they hold as custom_data',
    ],
    [
      { contents: { en: 'Hi {% if dynamic_content.a %}a{% endif %}' } },
      'contents.en: line 1, column 10: dynamic_content is not available: only a template with a field dynamic_content has it',
    ],
    [{ dynamic_content: `${'['.repeat(33)}${']'.repeat(33)}` }, 'dynamic_content can be nested at most 32 deep'],
    [{ dynamic_content: JSON.stringify({ x: 'x'.repeat(200_000) }) }, 'dynamic_content must have at most 200000 bytes'],
  ])('%j is refused', async (fields, expected) => {
    expect(told(await templates.create(aPush(fields)))).toEqual(refused(expected))
  })

  test('data of exactly 2,048 bytes is taken', async () => {
    expect((await templates.create(aPush({ data: { x: 'x'.repeat(2040) } }))).status).toBe(200)
  })

  test('all that is wrong is told at once', async () => {
    const { body } = await templates.create(aPush({ url: 'x', global_image: 'y', sms_from: 'z' }))
    expect(body.errors).toHaveLength(3)
  })
})

describe('email', () => {
  test('its fields are taken', async () => {
    const fields = {
      email_preheader: 'In short',
      email_from_name: 'Änn, at “The Shop”',
      email_from_address: 'shop@example.com',
      email_reply_to_address: 'reply+{{ user.external_id }}@example.com',
      email_sender_domain: 'mail.example.com',
      email_bcc: ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com', 'e@example.com'],
      include_unsubscribed: true,
      disable_email_click_tracking: true,
      disable_email_open_tracking: true,
    }
    expect((await templates.create(anEmailTemplate(fields))).body.content).toMatchObject(fields)
  })

  test.each([
    [{ email_subject: null }, 'email_subject is required for an email'],
    [{ email_body: ' ' }, 'email_body is required for an email'],
    [{ email_bcc: Array(6).fill('a@example.com') }, 'email_bcc must have at most 5 items'],
    [{ email_bcc: ['a@example.com', 'nobody'] }, address('email_bcc[1]')],
    [{ email_bcc: ['a@example.com\r\nTo: b@example.com'] }, address('email_bcc[0]')],
    [{ email_from_address: 'Ann <a@example.com>' }, address('email_from_address')],
    [{ email_reply_to_address: 'x' }, address('email_reply_to_address')],
    [{ email_sender_domain: 'example com' }, 'email_sender_domain must be a domain such as mail.example.com'],
    [{ email_subject: 'Hello\r\nBcc: all@example.com' }, oneLine('email_subject')],
    [{ email_subject: 'Hello\u2028there' }, oneLine('email_subject')],
    [{ email_from_name: 'Ann\nBcc: all@example.com' }, oneLine('email_from_name')],
    [{ email_from_name: 'Ann\u0085x' }, oneLine('email_from_name')],
    [{ email_from_name: 'x'.repeat(129) }, 'email_from_name must have at most 128 characters'],
    [{ email_subject: 'x'.repeat(2001) }, 'email_subject must have at most 2000 characters'],
    [{ email_body: 'x'.repeat(500_001) }, 'email_body must have at most 500000 characters'],
  ])('%j is refused', async (fields, expected) => {
    expect(told(await templates.create(anEmailTemplate(fields)))).toEqual(refused(expected))
  })
})

describe('text messages', () => {
  test('their fields are taken', async () => {
    const fields = { sms_from: '+15558675309', sms_media_urls: Array(10).fill('https://example.com/a.png') }
    expect((await templates.create(anSms(fields))).body.content).toMatchObject(fields)
  })

  test.each([
    [{ sms_from: '5558675309' }, 'sms_from must be a phone number in E.164 form, such as +15558675309'],
    [{ sms_media_urls: Array(11).fill('https://example.com/a.png') }, 'sms_media_urls must have at most 10 items'],
    [{ sms_media_urls: ['https://example.com/a.png', 'ftp://x'] }, web('sms_media_urls[1]')],
  ])('%j is refused', async (fields, expected) => {
    expect(told(await templates.create(anSms(fields)))).toEqual(refused(expected))
  })
})

describe('Liquid', () => {
  test.each([
    [
      aPush({ contents: { en: 'Hi', de: 'a\n  {{ x | nope }}' } }),
      'contents.de: line 2, column 3: undefined filter: nope',
    ],
    [
      aPush({ headings: { en: '{{ first name }}' } }),
      'headings.en: line 1, column 1: not a whole expression: {{ first name }}',
    ],
    [
      aPush({ headings: { en: '{% comment %}{% endcomment %}{{ first name }}' } }),
      'headings.en: line 1, column 30: not a whole expression: {{ first name }}',
    ],
    [
      aPush({ url: 'https://x.test/{% if a == %}b{% endif %}' }),
      'url: line 1, column 16: not a whole expression: {% if a == %}',
    ],
    [
      aPush({ subtitle: { en: '{% for a in b %}{% endfor %}' } }),
      'subtitle.en: line 1, column 1: for loops are not allowed in this field',
    ],
    [
      aPush({ contents: { en: '{% for a in b %}{% endfor %}' } }),
      'contents.en: line 1, column 1: for loops are not allowed in this field',
    ],
    [
      aPush({ contents: { en: '{% liquid\n for a in b\n endfor %}' } }),
      'contents.en: line 2, column 2: for loops are not allowed in this field',
    ],
    [
      aPush({ url: 'https://x.test/{% for a in b %}{% endfor %}' }),
      'url: line 1, column 16: for loops are not allowed in this field',
    ],
    [
      aPush({ apns_alert: { body: '{% for a in b %}{% endfor %}' } }),
      'apns_alert.body: line 1, column 1: for loops are not allowed in this field',
    ],
    [anEmailTemplate({ email_subject: 'Hi {{ x' }), 'email_subject: line 1, column 4: output "{{ x" not closed'],
    [
      anEmailTemplate({ email_body: '<p>\n\n       {% unless x %}' }),
      'email_body: line 3, column 8: tag {% unless x %} not closed',
    ],
    [anEmailTemplate({ email_body: "{% include 'x' %}" }), 'email_body: line 1, column 1: tag "include" not found'],
    [
      anEmailTemplate({ email_body: '<mjml><mj-body>\n{% if a %}</mj-body></mjml>' }),
      'email_body: line 2, column 1: tag {% if a %} not closed',
    ],
  ])('%j is refused with the field, the line and the column', async (fields, expected) => {
    expect(told(await templates.create(fields))).toEqual(refused(expected))
  })

  test('loops are allowed in the body and subject of an email, and in text messages', async () => {
    const loop = '{% for pair in user.tags %}{{ pair[0] }}{% endfor %}'
    expect((await templates.create(anEmailTemplate({ email_body: loop, email_subject: loop }))).status).toBe(200)
    expect((await templates.create(anSms({ contents: { en: loop } }))).status).toBe(200)
  })

  test('is not looked for in data', async () => {
    expect((await templates.create(aPush({ data: { x: '{{ x' } }))).status).toBe(200)
  })
})
