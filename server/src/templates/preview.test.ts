import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { anEmailTemplate, anSms, aPush, refused, TEMPLATE_NOT_FOUND, templatesOf } from '../../test/templates.ts'
import { anEmail, aPhone, aUser, type MadeUser, NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
let templates: ReturnType<typeof templatesOf>
let user: MadeUser
const email = anEmail()
const phone = aPhone()
beforeAll(async () => {
  app = await testApp({ clock: virtualClock('2030-03-04T05:06:07Z') })
  templates = templatesOf(app)
  user = await aUser(app, {
    properties: {
      language: 'de',
      tags: { first_name: 'Ann', 'last-name': 'O’Hara', user: 'a tag', html: '<b>&"\'', n: '1' },
    },
    subscriptions: [
      { type: 'AndroidPush', token: 'push-token' },
      { type: 'Email', token: email },
      { type: 'SMS', token: phone },
    ],
  })
})
afterAll(() => app.close())

const whom = () => ({ alias_label: 'external_id', alias_id: user.externalId })
/** The text, as this user would read it in a push. */
async function rendered(text: string, more: object = {}): Promise<string> {
  const { status, body } = await templates.previewUnsaved({ ...aPush({ contents: { en: text } }), ...whom(), ...more })
  expect({ status, errors: body.errors }).toEqual({ status: 200, errors: undefined })
  return body.rendered.contents
}

describe('preview', () => {
  test('renders every field of a stored template for a user, in their language', async () => {
    const { body } = await templates.create(
      aPush({
        contents: { en: 'Hello {{ first_name }}', de: 'Hallo {{ first_name }}' },
        headings: { en: 'Only English' },
        url: 'https://example.com/{{ user.external_id }}',
        big_picture: 'https://example.com/{{ template.id }}.png',
        apns_alert: { title: 'T {{ n }}', 'loc-args': ['{{ not a text }}'] },
        data: { untouched: '{{ first_name }}' },
      }),
    )
    expect(told(await templates.preview(body.id, whom()))).toEqual({
      status: 200,
      body: {
        channel: 'push',
        language: 'de',
        rendered: {
          contents: 'Hallo Ann',
          headings: 'Only English',
          url: `https://example.com/${user.externalId}`,
          big_picture: `https://example.com/${body.id}.png`,
          'apns_alert.title': 'T 1',
        },
      },
    })
    const english = await templates.preview(body.id, { ...whom(), language: 'en-GB' })
    expect(english.body).toMatchObject({ language: 'en-GB', rendered: { contents: 'Hello Ann' } })
  })

  test('finds the user by any alias; one that is not there is a 404, as is a template that is not there', async () => {
    const { body } = await templates.create(aPush())
    const byId = await templates.preview(body.id, { alias_label: 'onesignal_id', alias_id: user.id })
    expect(byId.status).toBe(200)
    expect(told(await templates.preview(body.id, { alias_label: 'external_id', alias_id: 'nobody' }))).toEqual({
      status: 404,
      body: { errors: ['User not found'] },
    })
    expect(told(await templates.preview(NOBODY, whom()))).toEqual(TEMPLATE_NOT_FOUND)
    expect(told(await templates.preview(body.id, { alias_label: 'external_id' }))).toEqual(
      refused('alias_label and alias_id name a user together: give both or neither'),
    )
  })

  test('sends nothing and stores nothing', async () => {
    const before = (await templates.list()).body.total_count
    await rendered('x')
    expect((await templates.list()).body.total_count).toBe(before)
  })

  test('an error of rendering is a 400 with field, line and column', async () => {
    const { body } = await templates.create(
      aPush({ contents: { en: 'a\n {{ 1 | divided_by: n | date: "%Y", "Nowhere/Land" }}' } }),
    )
    const { status, body: told } = await templates.preview(body.id, whom())
    expect(status).toBe(400)
    expect(told.errors).toEqual([expect.stringMatching(/^contents: line 2, column 2: /)])
  })
})

describe('what Liquid sees', () => {
  test.each([
    ['{{ first_name }}', 'Ann'],
    ['{{ last-name }}', 'O’Hara'],
    ['{{ user.tags.first_name }}', 'Ann'],
    ['{{ user.language }} {{ subscription.language }}', 'de de'],
    ['{{ missing }}|{{ user.missing.deep }}', '|'],
    ['{{ missing | default: "friend" }}', 'friend'],
    ['{{ app.name }} {{ org.name }}', 'Test app Test organization'],
    ['{{ message.custom_data.otp }}', '1234'],
    ['{{ journey.name }}', 'Welcome'],
    ['{{ dynamic_content.de.title }}', 'Titel'],
    ['{{ dynamic_content[user.language].title | upcase }}', 'TITEL'],
    [
      '{{ user.subscriptions.size }} {{ user.subscriptions | map: "subscription_token" | sort | last }}',
      '3 push-token',
    ],
    ['{{ template.name }}', 'T'],
    ['{% if first_name == "Ann" and n >= 0 or false %}yes{% else %}no{% endif %}', 'yes'],
    ['{% unless n contains "2" %}ok{% endunless %}', 'ok'],
    ['{% assign x = "a" | append: "b" %}{{ x }}', 'ab'],
    ['{% raw %}{{ x }}{% endraw %}', '{{ x }}'],
    ['{% capture x %}c{% endcapture %}{{ x }}{% comment %}x{% endcomment %}', 'c'],
    ['{% comment %}{{ half written }}{% if %}{% endcomment %}{{ first_name }}', 'Ann'],
    ['{% case n %}{% when "1" %}one{% endcase %}', 'one'],
    ['a {%- if true -%} b {%- endif -%} c', 'abc'],
  ])('%s is %j', async (text, expected) => {
    const more = {
      name: 'T',
      custom_data: { otp: '1234' },
      journey: { name: 'Welcome' },
      dynamic_content: JSON.stringify({ de: { title: 'Titel' } }),
    }
    expect(await rendered(text, more)).toBe(expected)
  })

  test.each([
    [',title\nsouth,"Two\r\n""lines"", one cell"', 'dynamic_content.south.title', 'Two\r\n"lines", one cell'],
    ['\uFEFFcity,title,price\r\nsouth,Warm,7\r\n\r\n', 'dynamic_content.south.price', '7'],
    ['city,title\nsouth,Warm', 'dynamic_content.south.city', 'south'],
    ['city,title,price\nsouth,Warm', 'dynamic_content.south.price', ''],
    [',en,zh-Hans\nhello,Hi,好', 'dynamic_content.hello["zh-Hans"]', '好'],
    ['city,title\n__proto__,x', 'dynamic_content.south.title', ''],
  ])('of the CSV %j %s is %j', async (dynamic_content, path, expected) => {
    expect(await rendered(`{{ ${path} }}`, { dynamic_content })).toBe(expected)
  })

  test.each([
    ['{{ "now" | date: "%Y-%m-%d %H:%M:%S" }}', '2030-03-04 05:06:07'],
    ['{{ "today" | date: "%A" }}', 'Monday'],
    ['{{ 1700000000 | date: "%Y-%m-%dT%H:%M" }}', '2023-11-14T22:13'],
    ['{{ "1700000000" | date: "%Y-%m-%d" }}', '2023-11-14'],
    ['{{ "2026-02-03 10:00" | date: "%H:%M" }}', '10:00'],
    ['{{ "2026-02-03T10:00:00+02:00" | date: "%H:%M" }}', '08:00'],
    ['{{ "February 3, 2026" | date: "%d/%m/%y" }}', '03/02/26'],
    ['{{ 1700000000 | date: "%H:%M", "Asia/Tokyo" }}', '07:13'],
    ['{{ "no date" | date: "%Y" }}', 'no date'],
    [
      '{{ 1 | pluralize: "item", "items" }} {{ 2 | pluralize: "item", "items" }} {{ n | pluralize: "cat" }}',
      'item items cat',
    ],
    ['{{ 0 | pluralize: "cat" }}', 'cats'],
    ['{{ "ab c" | capitalize }} {{ 1.26 | round: 1 }} {{ "a-b" | replace: "-", "+" }}', 'Ab c 1.3 a+b'],
    ['{{ " x " | strip }}{{ "<i>y</i>" | strip_html }}{{ "abcdef" | truncate: 4 }}', 'xya...'],
    ['{{ "a b c" | truncatewords: 2 }} {{ 1 | plus: 2 | minus: 1 }}', 'a b... 2'],
    ['{{ "b" | prepend: "a" }}{{ "AA" | downcase }}{{ "aa" | replace_first: "a", "b" }}', 'abaaba'],
  ])('%s is %j', async (text, expected) => {
    expect(await rendered(text)).toBe(expected)
  })

  test('a tag cannot stand in for an object', async () => {
    expect(await rendered('{{ user.external_id }}')).toBe(user.externalId)
    expect(await rendered('{{ user.tags.user }}')).toBe('a tag')
  })

  test('tags can be gone through in an email, as pairs', async () => {
    const email_body = '{% for pair in user.tags limit: 1 %}{{ forloop.index }}:{{ pair[0] }}={{ pair[1] }}{% endfor %}'
    const { body } = await templates.previewUnsaved({ ...anEmailTemplate({ email_body }), ...whom() })
    expect(body.rendered.email_body).toMatch(/^1:[\w-]+=/)
  })

  test('the subscription is the one that the message goes to', async () => {
    const text = '{{ subscription.email }}|{{ subscription.phone_number }}'
    const sms = await templates.previewUnsaved({ ...anSms({ contents: { en: text } }), ...whom() })
    expect(sms.body).toMatchObject({ channel: 'sms', rendered: { contents: `|${phone}` } })
    const mail = await templates.previewUnsaved({ ...anEmailTemplate({ email_subject: text }), ...whom() })
    expect(mail.body).toMatchObject({ channel: 'email', rendered: { email_subject: `${email}|` } })
  })
})

describe('email', () => {
  const mail = async (fields: object) => {
    const answer = await templates.previewUnsaved({ ...anEmailTemplate(), ...fields, ...whom() })
    expect({ status: answer.status, errors: answer.body.errors }).toEqual({ status: 200, errors: undefined })
    return answer.body.rendered
  }

  test('values are escaped in the body, unless the template says raw; plain texts have them as they are', async () => {
    const { email_body, email_subject } = await mail({
      email_subject: '{{ html }}',
      email_body: '<p title="{{ html }}">{{ html }}|{{ html | raw }}|{{ html | escape }}</p>',
    })
    const escaped = '&lt;b&gt;&amp;&#34;&#39;'
    expect(email_body).toBe(`<p title="${escaped}">${escaped}|<b>&"'|${escaped}</p>`)
    expect(email_subject).toBe('<b>&"\'')
    expect(await rendered('{{ html }}')).toBe('<b>&"\'')
  })

  test('what was captured is put in with raw: the values in it are escaped already', async () => {
    const { email_body } = await mail({
      email_body: '{% capture x %}<i>{{ html }}</i>{% endcapture %}{{ x | raw }}',
    })
    expect(email_body).toBe('<i>&lt;b&gt;&amp;&#34;&#39;</i>')
  })

  test('line breaks in values become breaks of HTML, and the values stay escaped', async () => {
    const { email_body } = await mail({
      email_body: '{{ message.custom_data.note | newline_to_br }}',
      custom_data: { note: '<i>a\nb' },
    })
    expect(email_body).toBe('&lt;i&gt;a<br />\nb')
  })

  test('a value cannot add a line to the header', async () => {
    const attack = 'Ann\r\nBcc: all@example.com\u2028X: y'
    const custom_data = { attack, address: 'a@example.com\r\nBcc: b@example.com' }
    const { email_subject, email_preheader } = await mail({
      email_subject: 'Hello {{ message.custom_data.attack }}',
      email_preheader: '{{ message.custom_data.attack }}',
      custom_data,
    })
    expect(email_subject).toBe('Hello Ann Bcc: all@example.com X: y')
    expect(email_preheader).toBe('Ann Bcc: all@example.com X: y')
    const reply = await templates.previewUnsaved({
      ...anEmailTemplate({ email_reply_to_address: '{{ message.custom_data.address }}' }),
      ...whom(),
      custom_data,
    })
    expect(told(reply)).toEqual(refused('email_reply_to_address: the result is not an email address'))
  })

  test('a value cannot make an address that runs code', async () => {
    const fields = { url: '{{ message.custom_data.link }}', custom_data: { link: ' java\tscript:alert(1)' } }
    const answer = await templates.previewUnsaved({ ...aPush(), ...fields, ...whom() })
    expect(told(answer)).toEqual(refused('url: the result is not an address that a message may open'))
  })

  test('a text part is made from the HTML, from what the recipient gets', async () => {
    const { email_text } = await mail({
      email_body: `<html><head><style>p{}</style><title>t</title></head><body><h1>Hello {{ first_name }} &amp; all</h1>
        <p>Read <a href="https://example.com/?a=1&amp;b=2">this</a>.<br>Now</p><ul><li>one</li><li>{{ html }}</li></ul></body></html>`,
    })
    expect(email_text).toBe('Hello Ann & all\n\nRead this (https://example.com/?a=1&b=2).\nNow\n\n* one\n* <b>&"\'')
  })

  describe('MJML', () => {
    const wrap = (inner: string) =>
      `<mjml>\n<mj-body>\n<mj-section>\n<mj-column>\n${inner}\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>`

    test('is compiled when it is saved; the source is answered, the HTML is sent', async () => {
      const email_body = wrap('<mj-text>Hello {{ first_name }}</mj-text>')
      const { body } = await templates.create(anEmailTemplate({ email_body }))
      expect(body.content.email_body).toBe(email_body)
      const { rendered: out } = (await templates.preview(body.id, whom())).body
      expect(out.email_body).toMatch(/^<!doctype html>[\s\S]*>Hello Ann<\/div>/)
      expect(out.email_body).not.toContain('<mj')
      expect(out.email_text).toBe('Hello Ann')
      await templates.update(body.id, { email_body: '<p>Plain {{ first_name }}</p>' })
      expect((await templates.preview(body.id, whom())).body.rendered.email_body).toBe('<p>Plain Ann</p>')
    })

    test('Liquid in it survives: between elements, in texts, in attributes, with signs that MJML takes for its own', async () => {
      const email_body = wrap(
        `{% if n < "2" and first_name %}<mj-text>shown {{ "<" | append: first_name }}</mj-text>{% else %}<mj-text>hidden</mj-text>{% endif %}
        {% for pair in user.subscriptions %}<mj-text>s{{ forloop.index }}</mj-text>{% endfor %}
        <mj-button href='https://example.com/?u={{ user.tags["first_name"] }}&amp;x=1'>Go {{ 'now' | upcase }}</mj-button>`,
      )
      const { email_body: html, email_text } = await mail({ email_body })
      expect(html).toContain('href="https://example.com/?u=Ann&amp;x=1"')
      expect(email_text.split('\n').filter(Boolean)).toEqual([
        'shown <Ann',
        's1',
        's2',
        's3',
        'Go NOW (https://example.com/?u=Ann&x=1)',
      ])
    })

    test.each([
      [
        wrap('<mj-include path="/etc/passwd" />'),
        'email_body: line 5, column 1: mj-include is not supported: put the part itself here',
      ],
      [
        wrap('<mj-nothing>x</mj-nothing>'),
        "email_body: line 5, column 1: MJML: <mj-nothing> Element mj-nothing doesn't exist or is not registered",
      ],
      [
        wrap('<mj-text colour="red">x</mj-text>'),
        'email_body: line 5, column 1: MJML: <mj-text> Attribute colour is illegal',
      ],
      [wrap('<mj-text {{ x }}="y">x</mj-text>'), 'email_body: line 5, column 10: MJML has no place for {{ x }} here'],
      [
        '<mjml><mj-head><mj-style inline="inline">p {}</mj-style></mj-head><mj-body></mj-body></mjml>',
        'email_body: MJML: styles with inline="inline" and mj-html-attributes are not supported',
      ],
    ])('%j is refused', async (email_body, expected) => {
      expect(told(await templates.create(anEmailTemplate({ email_body })))).toEqual(refused(expected))
    })

    test('what is nested without end is refused in our words', async () => {
      const email_body = `<mjml><mj-body>${'<mj-wrapper>'.repeat(5_000)}${'</mj-wrapper>'.repeat(5_000)}</mj-body></mjml>`
      const answer = await templates.create(anEmailTemplate({ email_body }))
      expect(told(answer)).toEqual(refused('email_body: MJML: is nested too deeply'))
    })

    test('a word that stands for Liquid in the compiler is refused each time', async () => {
      const email_body = wrap('<mj-text>lqd0zq {{ x }}</mj-text>')
      const error = 'email_body: line 5, column 10: the text holds a word that the compiler needs for itself: lqd…zq'
      for (let n = 0; n < 3; n++)
        expect(told(await templates.create(anEmailTemplate({ email_body })))).toEqual(refused(error))
    })
  })
})
