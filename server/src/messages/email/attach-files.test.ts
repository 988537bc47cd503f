import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  anEmailPort,
  anEngine,
  deliveriesOf,
  type FakeSender,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { emailCounts, mailsOf } from '../../../test/mail.ts'
import { mailing, messagesOf, refused } from '../../../test/messages.ts'
import { add, anOpenMessage } from '../../../test/recipients.ts'
import { type Answer, type HttpSink, startHttpSink } from '../../../test/sinks/http.ts'
import { anEmailTemplate, templatesOf } from '../../../test/templates.ts'
import { anEmail, told } from '../../../test/users.ts'
import { createAttachmentFetcher } from '../../channels/email/fetch-attachments.ts'
import { type Outbound, openOutbound } from '../../channels/outbound.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { createMerger } from '../../storage/merge.ts'
import { createFindTemplate } from '../../templates/find-template.ts'
import type { Engine } from '../engine/types.ts'
import { type PreparedMessage, prepareFromTemplate } from '../recipients.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let authorized: Record<string, string>
let files: HttpSink
let answer: (path: string) => Answer
let outbound: Outbound

beforeAll(async () => {
  files = await startHttpSink(({ path }) => answer(path))
  outbound = openOutbound({ allow: ['127.0.0.1'], allowHttp: 'inside' })
})
afterAll(async () => {
  await files.stop()
  await outbound.close()
})
setStage(
  (stage) => {
    ;({ app, clock, sender, appId } = stage)
    authorized = { authorization: `Key ${stage.tenant.key}` }
    engine = engineWith(1_000)
  },
  { emailAttachmentsMb: 1 },
)
beforeEach(() => {
  files.received.length = 0
  answer = (path) => ({ status: 200, headers: { 'content-type': 'application/pdf' }, body: `in ${path}` })
})

function engineWith(maxBytes: number, patienceMs?: number): Engine {
  const { fetch } = createAttachmentFetcher({ outbound, clock, log: createLog('silent'), maxBytes, patienceMs })
  return anEngine({ db: app.db, clock, sender, email: { ...anEmailPort(), fetchAttachments: fetch } })
}

const post = (fields: object) =>
  app.request('/notifications', { body: { app_id: appId, ...mailing(), ...fields }, headers: authorized })
async function mailTo(addresses: string[], fields: object = {}): Promise<string> {
  const { body, status } = await post({ email_to: addresses, ...fields })
  expect([status, body.errors]).toEqual([200, undefined])
  return body.id
}
const at = (path: string) => ({ url: `${files.url}${path}` })
const view = async (id: string) =>
  (await app.request(`/notifications/${id}?app_id=${appId}`, { headers: authorized })).body
const explain = async (id: string) => {
  const [row] = await deliveriesOf(app.db, appId, id)
  const path = `/apps/${appId}/messages/${id}/explain?subscription_id=${row?.subscriptionId}`
  return (await app.request(path, { headers: authorized })).body.subscriptions[0].explanation
}
const filesSent = () =>
  mailsOf(sender).map(({ content }) =>
    content.files?.map(({ name, contentType, encoded }) => [
      name,
      contentType,
      Buffer.from(encoded.toString(), 'base64').toString(),
    ]),
  )

describe('where the operator allows none', () => {
  test('a message and a template that ask for attachments are refused, with the setting that would allow them', async () => {
    const strict = await testApp({ clock, beside: app })
    const wanted = { email_attachments: [{ url: 'https://example.com/a.pdf' }] }
    const expected = refused(
      'email_attachments are not allowed on this server: its operator can allow them by the setting EMAIL_ATTACHMENTS_MB',
    )
    const { send, count } = messagesOf(strict)
    const before = await count()
    expect(told(await send(mailing({ email_to: [anEmail()], ...wanted })))).toEqual(expected)
    const { create, update } = templatesOf(strict)
    expect(told(await create(anEmailTemplate(wanted)))).toEqual(expected)
    const { body: plain } = await create(anEmailTemplate())
    expect(told(await update(plain.id, wanted))).toEqual(expected)
    // Made while it was allowed.
    const { body: made } = await templatesOf(app).create(anEmailTemplate(wanted))
    expect(told(await send({ email_to: [anEmail()], template_id: made.id }))).toEqual(expected)
    expect(await count()).toBe(before)
    expect((await send(mailing({ email_to: [anEmail()], email_attachments: [] }))).status).toBe(200)
    expect((await send(mailing({ email_to: [anEmail()], email_attachments: null }))).status).toBe(200)
    await strict.close()
  })

  test('those that were accepted before are not sent', async () => {
    const id = await mailTo([anEmail()], { email_attachments: [at('/a.pdf')] })
    await runEngine(engineWith(0))
    expect(await tally(app.db, appId, id)).toEqual({ 'failed attachment_failed': 1 })
    expect(files.received).toEqual([])
  })
})

describe('where they are allowed', () => {
  const item = (fields: object) => ({ email_attachments: [{ url: 'https://example.com/a.pdf' }, fields] })
  const named = 'email_attachments[1]'
  const url = 'https://example.com/b.pdf'

  test.each([
    [item({ url: 'ftp://example.com/a' }), `${named}.url must be an http or https address`],
    [item({ url: 'a.pdf' }), `${named}.url must be an http or https address`],
    [item({ url: 'https://example.com/\n' }), `${named}.url must be an http or https address`],
    [item({ url: 'https://example.com/{{ user.id }}.pdf' }), `${named}.url cannot hold Liquid`],
    [item({ url, filename: '{{ user.id }}.pdf' }), `${named}.filename cannot hold Liquid`],
    [
      item({ url, filename: 'a\r\nBcc: all@example.com' }),
      `${named}.filename must be a name without slashes and control characters`,
    ],
    [item({ url, filename: '../a' }), `${named}.filename must be a name without slashes and control characters`],
    [
      item({ url, content_type: 'text/html\r\nBcc: all@example.com' }),
      `${named}.content_type must be one such as application/pdf, without parameters`,
    ],
    [
      item({ url, content_type: 'message/rfc822' }),
      `${named}.content_type must be one such as application/pdf, without parameters`,
    ],
    [item({ filename: 'a.pdf' }), expect.stringContaining('email_attachments')],
    [item({ url: 7 }), expect.stringContaining('email_attachments')],
    [{ email_attachments: 'https://example.com/a.pdf' }, expect.stringContaining('email_attachments')],
    [{ email_attachments: Array(11).fill({ url }) }, 'email_attachments must have at most 10 items'],
  ])('%j is refused', async (fields, expected) => {
    expect(told(await post({ email_to: [anEmail()], ...fields }))).toEqual(refused(expected))
  })

  test('they hang on to the mail of everybody, fetched once, and are shown with the message', async () => {
    const wanted = [
      { ...at('/path/Rechnung%20f%C3%BCr%20Ann.pdf?x=y') },
      { ...at('/b'), filename: 'Bells.csv', content_type: 'text/csv' },
      { ...at('/'), filename: null, content_type: null },
    ]
    const addresses = Array.from({ length: 30 }, anEmail)
    const id = await mailTo(addresses, { email_attachments: wanted })
    const liquid = await mailTo(addresses.slice(0, 2), {
      email_subject: 'For {{ subscription.email }}',
      email_attachments: [at('/b')],
    })
    await mailTo(addresses.slice(0, 1))
    await runEngine(engine)
    expect(await tally(app.db, appId, id)).toEqual({ sent: 30 })
    expect(await tally(app.db, appId, liquid)).toEqual({ sent: 2 })
    const sent = filesSent()
    const ofAll = [
      ['Rechnung für Ann.pdf', 'application/pdf', 'in /path/Rechnung%20f%C3%BCr%20Ann.pdf?x=y'],
      ['Bells.csv', 'text/csv', 'in /b'],
      ['', 'application/pdf', 'in /'],
    ]
    expect(sent.filter((it) => it?.length === 3)).toEqual(Array(30).fill(ofAll))
    expect(sent.filter((it) => it?.length === 1)).toEqual(Array(2).fill([['b', 'application/pdf', 'in /b']]))
    expect(sent.filter((it) => it === undefined)).toHaveLength(1)
    expect(files.received).toHaveLength(4)
    expect(new Set(mailsOf(sender).flatMap(({ content }) => content.files?.[0]?.encoded ?? [])).size).toBe(2)
    expect((await view(id)).email_attachments).toEqual(wanted)
  })

  test('a template brings them, and a message has its own instead', async () => {
    const template = await app.request('/templates', {
      body: { app_id: appId, ...anEmailTemplate({ email_attachments: [at('/template.pdf')] }) },
      headers: authorized,
    })
    expect(template.body.content.email_attachments).toEqual([at('/template.pdf')])
    const send = (fields: object) =>
      app.request('/notifications', {
        body: { app_id: appId, template_id: template.body.id, email_to: [anEmail()], ...fields },
        headers: authorized,
      })
    await send({})
    await send({ email_attachments: [at('/own.pdf')] })
    await send({ email_attachments: [] })
    await runEngine(engine)
    expect(
      filesSent()
        .map((it) => it?.[0]?.[0])
        .sort(),
    ).toEqual(['own.pdf', 'template.pdf', undefined])
  })

  test('the mails of a step in a journey have those of its template', async () => {
    const { body: template } = await app.request('/templates', {
      body: { app_id: appId, ...anEmailTemplate({ email_attachments: [at('/step.pdf')] }) },
      headers: authorized,
    })
    const findTemplate = createFindTemplate({ db: app.db, merger: createMerger({ slots: 2 }) })
    const prepared = await prepareFromTemplate({ findTemplate, ...engine }, appId, template.id, clock.now())
    const id = await anOpenMessage(engine, appId, prepared as PreparedMessage)
    await add(engine, appId, id, await recipients(engine, appId, 2, { type: 'Email' }))
    await runEngine(engine)
    expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
    expect(filesSent()).toEqual(Array(2).fill([['step.pdf', 'application/pdf', 'in /step.pdf']]))
    expect(files.received).toHaveLength(1)
  })

  test('one that cannot be had for good fails its message, and no other', async () => {
    answer = (path) =>
      path === '/large' ? { status: 200, body: 'x'.repeat(1_001) } : { status: path === '/good' ? 200 : 404 }
    const bad = ['/missing', '/large'].map(at)
    const inside = { url: 'https://127.0.0.2/' }
    const failing = await Promise.all(
      [...bad, inside].map((it) => mailTo([anEmail()], { email_attachments: [at('/good'), it] })),
    )
    const fine = [await mailTo([anEmail()]), await mailTo([anEmail()], { email_attachments: [at('/good')] })]
    await runEngine(engine)
    for (const id of failing) expect(await tally(app.db, appId, id)).toEqual({ 'failed attachment_failed': 1 })
    for (const id of fine) expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
    expect(await emailCounts(app.db, appId)).toEqual({ 'example.com other': { sent: 2, delivered: 2, failed: 3 } })
    expect(await explain(failing[0] as string)).toBe(
      'It could not be made: an attachment could not be fetched, or is too large.',
    )
    expect(await view(failing[0] as string)).toMatchObject({ errored: 1, completed_at: expect.any(Number) })
  })

  test('one that cannot be had for now is asked for again, until the time of the mail is over', async () => {
    answer = () => ({ status: 503 })
    const address = anEmail()
    const [id, lost] = [
      await mailTo([address], { email_attachments: [at('/a')] }),
      await mailTo([address], { email_attachments: [at('/b')], ttl: 3_600 }),
    ]
    const other = await mailTo([address])
    await runEngine(engine)
    expect(await deliveriesOf(app.db, appId, id)).toMatchObject([
      { state: 'pending', reason: 'attachment_failed', attempts: 1, dueAt: new Date(clock.now().getTime() + 300_000) },
    ])
    expect(await explain(id)).toBe('It waits to be sent again: an attachment could not be fetched from its address.')
    expect(await tally(app.db, appId, other)).toEqual({ sent: 1 })
    clock.advance({ minutes: 5 })
    await runEngine(engine)
    expect(await deliveriesOf(app.db, appId, id)).toMatchObject([{ state: 'pending', attempts: 2 }])
    answer = (path) => ({ status: path === '/a' ? 200 : 503 })
    clock.advance({ minutes: 10 })
    await runEngine(engine)
    expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
    for (let i = 0; i < 6; i++) {
      clock.advance({ minutes: 15 })
      await runEngine(engine)
    }
    expect(await tally(app.db, appId, lost)).toEqual({ 'expired attachment_failed': 1 })
    expect(sender.calls).toHaveLength(2)
  })

  test('one that is slow is waited for, without an attempt and without holding up others', async () => {
    answer = (path) => (path === '/slow' ? 'silent' : { status: 200, body: 'x' })
    const impatient = engineWith(1_000, 50)
    const slow = await mailTo([anEmail()], { email_attachments: [at('/slow')] })
    const fine = await mailTo([anEmail()])
    await runEngine(impatient)
    expect(await tally(app.db, appId, fine)).toEqual({ sent: 1 })
    expect(await deliveriesOf(app.db, appId, slow)).toMatchObject([
      { state: 'pending', reason: 'attachment_awaited', attempts: 0, dueAt: new Date(clock.now().getTime() + 15_000) },
    ])
    clock.advance({ seconds: 15 })
    await runEngine(impatient)
    expect(await deliveriesOf(app.db, appId, slow)).toMatchObject([{ state: 'pending', attempts: 0 }])
    expect(files.received.map(({ path }) => path)).toEqual(['/slow'])
  })
})
