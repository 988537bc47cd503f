import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { aDelivery, aMessage, factsOf } from '../../test/deliveries.ts'
import { startHttpSink } from '../../test/sinks/http.ts'
import { type SmppSink, startSmppSink } from '../../test/sinks/texts.ts'
import { SMPP, setSms, TWILIO } from '../../test/sms.ts'
import { aPhone } from '../../test/users.ts'
import type { ChannelOutcome } from '../channels/channel.ts'
import { type OutboundSettings, openOutbound } from '../channels/outbound.ts'
import { createFeedbackContext, type FeedbackContext } from '../feedback/context.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createLog } from '../lib/log.ts'
import { secretBox } from '../lib/secrets.ts'
import { certificateFor } from '../sink/certificate.ts'
import { createListener } from '../storage/listen.ts'
import { createMerger } from '../storage/merge.ts'
import { sql } from '../storage/sql.ts'
import { createRenderer } from '../templates/render/renderer.ts'
import { createUsersContext } from '../users/context.ts'
import { mailParts } from './inbound-email.ts'
import { readTwilioWebhook } from './read-twilio-callback.ts'
import { createTextChannels, type TextChannels, type Texts } from './sms-channels.ts'

let app: TestApp
let tenant: Tenant
let feedback: FeedbackContext
const clock = systemClock()
const log = createLog('silent')
const stops: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  app = await testApp({ publicUrl: 'https://bell.example' })
  const parts = { db: app.db, clock, newId, merger: createMerger({ slots: 2 }) }
  feedback = createFeedbackContext({
    ...parts,
    secrets: secretBox('the secret key of the tests'),
    change: createUsersContext(parts).change,
    readTwilioWebhook,
    publicUrl: 'https://bell.example',
    sendWebhook: () => Promise.reject(new Error('no webhooks here')),
    emailFeedback: mailParts({
      secretKey: 'the secret key of the tests',
      outbound: openOutbound(),
      renderer: createRenderer(),
    }),
  })
})
afterAll(() => app.close())
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function channels(settings: OutboundSettings = { allow: ['127.0.0.1'] }): Promise<TextChannels> {
  tenant = await app.anotherTenant()
  const outbound = openOutbound(settings)
  const listener = createListener(app.connection, log)
  const texts = createTextChannels({ feedback, outbound, twilioUrl: 'https://api.twilio.com', listener, log })
  stops.push(
    () => outbound.close(),
    () => listener.close(),
    () => texts.close(),
  )
  return texts
}
async function centre(systemId = SMPP.system_id): Promise<SmppSink> {
  const sink = await startSmppSink({ systemId, password: SMPP.password })
  stops.push(sink.close)
  return sink
}
const atCentre = ({ port }: SmppSink) => ({ ...SMPP, host: '127.0.0.1', port })

const send = async (texts: Texts | undefined, to: string): Promise<ChannelOutcome[]> =>
  (await texts?.channel.send([{ to, text: 'Hello', statusCallback: texts.statusCallback }])) ?? []

async function somebody() {
  const phone = aPhone()
  const { body } = await app.request(`/apps/${tenant.id}/users`, {
    headers: { authorization: `Key ${tenant.key}` },
    body: { subscriptions: [{ type: 'SMS', token: phone }] },
  })
  return { phone, id: body.subscriptions[0].id as string }
}
const typesOf = async (id: string) => {
  const [row] = await app.db.query<{ notificationTypes: number | null }>(sql`
    select notification_types from subscriptions where app_id = ${tenant.id} and id = ${id}`)
  return row?.notificationTypes
}

describe('a message centre', () => {
  test('is signed in to when it is set, though nobody sends; who texts STOP is unsubscribed at once', async () => {
    const [texts, sink] = [await channels(), await centre()]
    texts.start()
    await setSms(app, { ...atCentre(sink), opt_out_words: ['Basta'] }, tenant)
    await vi.waitFor(() => expect(sink.sessions.size).toBe(1), 5_000)
    const [first, second] = [await somebody(), await somebody()]
    const write = ({ phone }: { phone: string }, text: string) =>
      sink.deliver({ source_addr: phone.slice(1), destination_addr: '15550002222', short_message: text })
    expect(await write(first, 'Stop')).toBe(0)
    expect(await write(second, 'basta!')).toBe(0)
    expect([await typesOf(first.id), await typesOf(second.id)]).toEqual([-2, -2])
    expect(await write(first, 'START')).toBe(0)
    expect(await typesOf(first.id)).toBe(1)
  })

  test('takes texts, and its receipts find them, also those that came before the answer was written down', async () => {
    const [texts, sink] = [await channels(), await centre()]
    await setSms(app, atCentre(sink), tenant)
    const opened = await texts.open(tenant.id)
    expect(opened?.statusCallback).toBeUndefined()
    const message = await aMessage(app, clock.now(), { appId: tenant.id, channel: 'sms' })
    const { phone, id } = await somebody()
    const [outcome] = await send(opened, phone)
    expect(outcome).toEqual({ kind: 'sent', id: 'm1' })
    const waiting = () => app.db.query(sql`select reference, state from sms_receipts where app_id = ${tenant.id}`)
    await vi.waitFor(async () => expect(await waiting()).toEqual([{ reference: 'm1', state: 'delivered' }]))
    const delivery = { appId: tenant.id, platform: 'SMS', subscriptionId: id, providerRef: 'm1' }
    await aDelivery(app, message, delivery)
    // The centre says it again: now it is known.
    await sink.deliver({ source_addr: '1', esm_class: 4, short_message: 'id:m1 stat:DELIVRD err:000' })
    expect(await factsOf({ ...app, tenant }, message)).toEqual({ 'SMS provider_successful': 1 })
    expect(await waiting()).toEqual([])
  })

  test('moves the provider counts of a message by what it reports, and says of some that it does not know', async () => {
    const [texts, sink] = [await channels(), await centre()]
    texts.start()
    await setSms(app, atCentre(sink), tenant)
    await vi.waitFor(() => expect(sink.sessions.size).toBe(1), 5_000)
    const message = await aMessage(app, clock.now(), { appId: tenant.id, channel: 'sms' })
    for (const [i, word] of ['DELIVRD', 'UNDELIV', 'UNKNOWN', 'ENROUTE'].entries()) {
      await aDelivery(app, message, { appId: tenant.id, platform: 'SMS', providerRef: `r${i}` })
      await sink.deliver({ source_addr: '1', esm_class: 4, short_message: `id:r${i} stat:${word} err:000` })
    }
    const { body } = await app.request(`/notifications/${message.id}?app_id=${tenant.id}`, {
      headers: { authorization: `Key ${tenant.key}` },
    })
    const counts = { provider_successful: 1, provider_failed: 1, provider_errored: 1 }
    expect(body.platform_delivery_stats.sms).toMatchObject(counts)
  })

  test('gives way to another when the settings change, and is left when they go', async () => {
    const [texts, before, after] = [await channels(), await centre(), await centre('other')]
    texts.start()
    await setSms(app, atCentre(before), tenant)
    await vi.waitFor(() => expect(before.sessions.size).toBe(1), 5_000)
    await setSms(app, { ...atCentre(after), system_id: 'other' }, tenant)
    await vi.waitFor(() => expect([before.sessions.size, after.sessions.size]).toEqual([0, 1]), 5_000)
    await app.request(`/apps/${tenant.id}/sms_settings`, {
      method: 'DELETE',
      headers: { authorization: `Key ${tenant.organizationKey}` },
    })
    await vi.waitFor(() => expect(after.sessions.size).toBe(0), 5_000)
    expect(await texts.open(tenant.id)).toBeUndefined()
  })

  test('is signed in to once, however often it is opened', async () => {
    const [texts, sink] = [await channels(), await centre()]
    await setSms(app, atCentre(sink), tenant)
    const all = await Promise.all(Array.from({ length: 5 }, () => texts.open(tenant.id)))
    expect(new Set(all).size).toBe(1)
    await all[0]?.channel.close()
    const [outcome] = await send(all[0], aPhone())
    expect(outcome?.kind).toBe('sent')
    expect(sink.binds).toHaveLength(1)
  })

  test('in a network of ours is not dialed', async () => {
    const [texts, sink] = [await channels({}), await centre()]
    await setSms(app, atCentre(sink), tenant)
    const opened = await texts.open(tenant.id)
    expect(await send(opened, aPhone())).toEqual([{ kind: 'misconfigured', reason: 'address not allowed' }])
    expect(sink.binds).toHaveLength(0)
  })
})

test('Twilio is asked in the name of the app’s account, and told where to report', async () => {
  const tls = certificateFor('api.twilio.com')
  const sink = await startHttpSink(() => ({ status: 201, body: JSON.stringify({ sid: 'SM1' }) }), { tls })
  stops.push(sink.stop)
  const connect = { 'https://api.twilio.com': { host: '127.0.0.1', port: sink.port } }
  const texts = await channels({ route: { ca: tls.cert, connect } })
  await setSms(app, TWILIO, tenant)
  const phone = aPhone()
  expect(await send(await texts.open(tenant.id), phone)).toEqual([{ kind: 'sent', id: 'SM1' }])
  const [request] = sink.received
  expect(request?.path).toBe(`/2010-04-01/Accounts/${TWILIO.account_sid}/Messages.json`)
  expect(request?.headers.authorization).toBe(`Basic ${btoa(`${TWILIO.account_sid}:${TWILIO.auth_token}`)}`)
  expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
    To: phone,
    From: TWILIO.from,
    Body: 'Hello',
    StatusCallback: `https://bell.example/feedback/twilio/${tenant.id}`,
  })
})

test('an app without a provider sends no texts', async () => {
  const texts = await channels()
  expect(await texts.open(tenant.id)).toBeUndefined()
})
