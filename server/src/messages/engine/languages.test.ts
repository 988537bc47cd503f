// Whatever the channel, people read what was written in their language.

import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import { writeReference } from '../../../test/email-back.ts'
import { type FakeSender, recipients, runEngine, setStage } from '../../../test/engine.ts'
import { mailsOf } from '../../../test/mail.ts'
import { anEmail } from '../../../test/users.ts'
import type { AppId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { NO_RUN } from '../message.ts'
import type { Engine } from './types.ts'

let app: TestApp
let sender: FakeSender
let engine: Engine
let appId: AppId
let headers: Record<string, string>

setStage(
  (stage) => {
    ;({ app, sender, engine, appId } = stage)
    headers = { authorization: `Key ${stage.tenant.key}` }
  },
  { publicUrl: 'https://bell.example' },
)

const post = (path: string, body: object) => app.request(path, { body: { app_id: appId, ...body }, headers })

async function send(fields: object): Promise<string> {
  const { status, body } = await post('/notifications', fields)
  expect([status, body.errors]).toEqual([200, undefined])
  await runEngine(engine)
  return body.id
}

/** The address of each by their language. */
async function readers(...languages: string[]): Promise<Map<string, string>> {
  const addresses = new Map(languages.map((language) => [anEmail(), language]))
  for (const [token, language] of addresses)
    expect(
      (await post(`/apps/${appId}/users`, { properties: { language }, subscriptions: [{ type: 'Email', token }] }))
        .status,
    ).toBe(201)
  return addresses
}

const NAMES = {
  en: 'English',
  'zh-Hans': 'simplified',
  'zh-Hant': 'traditional',
  nb: 'Norwegian',
  he: 'Hebrew',
  pt: 'pt',
}
const READ: [language: string, text: string][] = [
  ['zh-CN', 'simplified'],
  ['zh', 'simplified'],
  ['zh-HK', 'traditional'],
  ['no', 'Norwegian'],
  ['iw', 'Hebrew'],
  ['pt-BR', 'pt'],
  ['fr', 'English'],
]

test.each(['iOSPush', 'SMS'] as const)('%s is in the language of each, by any name of it', async (type) => {
  const tokens = new Map<string, string>()
  for (const [language] of READ) {
    const [one] = await recipients(engine, appId, 1, { type, language })
    tokens.set(one?.token ?? '', language)
  }
  await send({
    included_segments: ['Total Subscriptions'],
    contents: NAMES,
    ...(type === 'SMS' && { target_channel: 'sms' }),
  })
  const read = sender.calls.map(({ outgoing }) => {
    const text = outgoing.kind === 'push' ? outgoing.content.body : outgoing.kind === 'sms' ? outgoing.content.text : ''
    return [tokens.get(outgoing.token), text]
  })
  expect(new Map(read as [string, string][])).toEqual(new Map(READ))
})

describe('an email', () => {
  const inMjml = (text: string) =>
    `<mjml><mj-body><mj-section><mj-column><mj-text>${text}</mj-text></mj-column></mj-section></mj-body></mjml>`
  const texts = (of: (name: string) => string) =>
    Object.fromEntries(Object.entries(NAMES).map(([code, name]) => [code, of(name)]))
  const bodies: [string, Record<string, string>][] = [
    ['HTML', texts((name) => `<p>Body in ${name}</p>`)],
    ['Liquid', texts((name) => `<p>Body in ${name}{{ nothing }}</p>`)],
    ['MJML', texts((name) => inMjml(`Body in ${name}`))],
    ['MJML for some', { ...texts((name) => `<p>Body in ${name}</p>`), en: inMjml('Body in English') }],
  ]

  test.each(bodies)('has subject, body and preheader in the language of each: %s', async (_, email_body) => {
    const addresses = await readers(...READ.map(([language]) => language))
    await send({
      email_to: [...addresses.keys()],
      email_subject: texts((name) => `Subject in ${name}`),
      email_preheader: { en: 'Before, in English', he: 'Before, in Hebrew' },
      email_body,
    })
    const mails = mailsOf(sender)
    const read = mails.map(({ to, content, text, html }) => {
      const body = /Body in \w+/.exec(text)?.[0]
      expect(html).toContain(body)
      return [addresses.get(to), [content.subject, body, /Before, in \w+/.exec(html)?.[0]]]
    })
    expect(Object.fromEntries(read)).toEqual(
      Object.fromEntries(
        READ.map(([language, name]) => [
          language,
          [`Subject in ${name}`, `Body in ${name}`, `Before, in ${name === 'Hebrew' ? 'Hebrew' : 'English'}`],
        ]),
      ),
    )
  })

  test('is the same in the browser, in a preview, and from a template', async () => {
    const [address = ''] = (await readers('zh-TW')).keys()
    const template = await post('/templates', {
      name: 'In two languages',
      isEmail: true,
      email_subject: { en: 'Bells', 'zh-Hant': '鐘' },
      email_body: {
        en: inMjml('Ring [view_message_in_browser_url]'),
        'zh-Hant': inMjml('響 [view_message_in_browser_url]'),
      },
    })
    expect(template.status).toBe(200)
    expect(template.body.content.email_subject).toEqual({ en: 'Bells', 'zh-Hant': '鐘' })
    const id = await send({ email_to: [address], template_id: template.body.id })
    const [mail] = mailsOf(sender)
    expect([mail?.content.subject, mail?.text]).toEqual(['鐘', expect.stringContaining('響')])
    const preview = await app.request(`/templates/${template.body.id}/preview?app_id=${appId}`, {
      body: { language: 'zh-HK' },
      headers,
    })
    expect(preview.body.rendered).toMatchObject({ email_subject: '鐘', email_text: expect.stringContaining('響') })
    const [row] = await app.db.query<{ emailHtmlByLanguage: object }>(
      sql`select email_html_by_language from messages where app_id = ${appId} and id = ${id}`,
    )
    expect(Object.keys(row?.emailHtmlByLanguage ?? {})).toEqual(['en', 'zh-Hant'])
    const [delivery] = await app.db.query<{ expandAt: Date; subscriptionId: string }>(
      sql`select expand_at, subscription_id from deliveries where app_id = ${appId} and message_id = ${id}`,
    )
    const { expandAt, subscriptionId } = delivery as { expandAt: Date; subscriptionId: string }
    const reference = writeReference({ appId, expandAt, messageId: id, subscriptionId, runId: NO_RUN }, 'view')
    const shown = await fetch(`${app.url}/e/v/${reference}`)
    expect(await shown.text()).toContain('響')
  })

  test('in one language is put together once for all', async () => {
    const addresses = await readers('de', 'fr', 'zh-TW')
    await send({ email_to: [...addresses.keys()], email_subject: 'Bells', email_body: '<p>Ring</p>' })
    expect(new Set(mailsOf(sender).map(({ content }) => content)).size).toBe(1)
  })

  test.each([
    [{ email_subject: { de: 'Glocken' } }, ['email_subject.en is required for an email']],
    [{ email_body: { en: ' ' } }, ['email_body.en is required for an email']],
    [{ email_subject: { en: 'Bells\r\nX: y' } }, ['email_subject.en must be one line, without control characters']],
    [
      { email_body: { en: 'x', xx: 'y' } },
      [expect.stringContaining('email_body: "xx" is not one of the languages en,')],
    ],
    [{ email_body: { en: 'x', de: '{{ a b }}' } }, [expect.stringContaining('email_body.de: line 1, column 1: ')]],
    [{ email_body: { en: '<mjml>' } }, [expect.stringContaining('email_body.en: ')]],
    [{ email_subject: { en: 7 } }, ['email_subject.en must be a string']],
    [{ email_subject: ['x'] }, ['email_subject must be a string, an object or null']],
    [{ email_preheader: { en: 'x'.repeat(2_001) } }, ['email_preheader.en must have at most 2000 characters']],
  ])('%j is refused', async (fields, errors) => {
    const answer = await post('/notifications', {
      email_to: [anEmail()],
      email_subject: 'Bells',
      email_body: '<p>Ring</p>',
      ...fields,
    })
    expect({ status: answer.status, errors: answer.body.errors }).toEqual({ status: 400, errors })
  })
})
