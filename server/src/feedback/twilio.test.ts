import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aDelivery, aMessage, factsOf } from '../../test/deliveries.ts'
import { runJobs } from '../../test/events.ts'
import { counted } from '../../test/messages.ts'
import { SMPP, setSms, TWILIO, twilioSignature } from '../../test/sms.ts'
import { aPhone, aUser } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'

const PUBLIC_URL = 'https://bell.example'
const EMPTY = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'
let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock, publicUrl: PUBLIC_URL })
  await setSms(app, { ...TWILIO, opt_out_words: ['Arrêt'], opt_in_words: ['Retour'] })
})
afterAll(() => app.close())

type Call = { form: Record<string, string>; appId?: string; token?: string; signature?: string | null; type?: string }

async function call({ form, appId = app.tenant.id, token = TWILIO.auth_token, signature, type }: Call) {
  const signed = signature ?? twilioSignature(token, `${PUBLIC_URL}/feedback/twilio/${appId}`, form)
  const response = await fetch(`${app.url}/feedback/twilio/${appId}`, {
    method: 'POST',
    headers: {
      'content-type': type ?? 'application/x-www-form-urlencoded; charset=utf-8',
      ...(signature !== null && { 'x-twilio-signature': signed }),
    },
    body: new URLSearchParams(form).toString(),
  })
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
}
const status = (sid: string, state: string, more: Record<string, string> = {}) =>
  call({ form: { MessageSid: sid, SmsSid: sid, MessageStatus: state, ...more } })
const write = (from: string, text: string, more: Record<string, string> = {}) =>
  call({ form: { MessageSid: newId(), From: from, To: TWILIO.from, Body: text, SmsStatus: 'received', ...more } })

async function somebody(draft: object = {}) {
  const phone = aPhone()
  const user = await aUser(app, { subscriptions: [{ type: 'SMS', token: phone, ...draft }] })
  return { phone, id: user.subscriptionIds[0] as string }
}
const typesOf = async (id: string) => {
  const [row] = await app.db.query<{ notificationTypes: number | null }>(sql`
    select notification_types from subscriptions where app_id = ${app.tenant.id} and id = ${id}`)
  return row?.notificationTypes
}
const sent = async (sid: string, more: object = {}) => {
  const message = await aMessage(app, clock.now(), { channel: 'sms' })
  const subscriptionId = await aDelivery(app, message, { platform: 'SMS', providerRef: sid, ...more })
  return { message, subscriptionId }
}

describe('a receipt', () => {
  test.each([
    ['delivered', 'provider_successful'],
    ['undelivered', 'provider_failed'],
    ['failed', 'provider_failed'],
  ])('that says %s is counted once as %s', async (state, fact) => {
    const sid = `SM${newId()}`
    const { message } = await sent(sid)
    expect(await status(sid, state)).toEqual({ status: 200, text: EMPTY, type: 'text/xml; charset=utf-8' })
    await Promise.all(Array.from({ length: 5 }, () => status(sid, state)))
    expect(await factsOf(app, message)).toEqual({ [`SMS ${fact}`]: 1 })
  })

  test('moves the provider counts of the message, and the state of its deliveries does not', async () => {
    const message = await aMessage(app, clock.now(), { channel: 'sms' })
    const sids = Array.from({ length: 4 }, () => `SM${newId()}`)
    for (const sid of sids) await aDelivery(app, message, { platform: 'SMS', providerRef: sid })
    await counted(app, message.id, [
      { state: 'sent', count: 4, platform: 'SMS' },
      { state: 'failed', reason: 'invalid number', count: 2, platform: 'SMS' },
    ])
    const stats = async () => {
      const { body } = await app.request(`/notifications/${message.id}?app_id=${app.tenant.id}`)
      return body.platform_delivery_stats.sms
    }
    const rest = { successful: 4, failed: 0, errored: 2, received: 0 }
    expect(await stats()).toMatchObject({ ...rest, provider_successful: 0, provider_failed: 0, provider_errored: 0 })
    for (const [sid, state] of [
      [sids[0], 'delivered'],
      [sids[1], 'delivered'],
      [sids[2], 'undelivered'],
    ] as const)
      await status(sid as string, state)
    expect(await stats()).toMatchObject({ ...rest, provider_successful: 2, provider_failed: 1, provider_errored: 0 })
  })

  test('on the way counts for nothing', async () => {
    const sid = `SM${newId()}`
    const { message } = await sent(sid)
    for (const state of ['queued', 'sending', 'sent', 'something new'])
      expect((await status(sid, state)).status).toBe(200)
    expect(await factsOf(app, message)).toEqual({})
  })

  test('counts a delivery under one fact, whichever order they come in', async () => {
    const [sid, other] = [`SM${newId()}`, `SM${newId()}`]
    const [first, second] = [await sent(sid), await sent(other)]
    for (const state of ['undelivered', 'delivered', 'undelivered']) await status(sid, state)
    await Promise.all([status(other, 'delivered'), status(other, 'failed')])
    for (const { message } of [first, second]) {
      const facts = await factsOf(app, message)
      expect(facts['SMS provider_successful']).toBe(1)
      expect(facts['SMS provider_failed'] ?? 0).toBe(0)
    }
  })

  test('that comes before the answer to its text is noted when that is written down', async () => {
    const sid = `SM${newId()}`
    const { message, subscriptionId } = await sent(sid, { state: 'pending', providerRef: null })
    expect((await status(sid, 'undelivered')).status).toBe(200)
    expect((await status(sid, 'delivered')).status).toBe(200)
    await runJobs(app, clock)
    expect(await factsOf(app, message)).toEqual({})
    await app.db.query(sql`
      update deliveries set state = 'sent', provider_ref = ${sid}, settled_at = ${clock.now()}
      where app_id = ${app.tenant.id} and message_id = ${message.id} and subscription_id = ${subscriptionId}`)
    clock.advance({ seconds: 5 })
    await runJobs(app, clock)
    expect(await factsOf(app, message)).toEqual({ 'SMS provider_successful': 1 })
    expect(await waiting()).toBe(0)
  })

  test('for a text that nobody sent is looked at again for an hour, and forgotten', async () => {
    await status(`SM${newId()}`, 'delivered')
    expect(await waiting()).toBe(1)
    clock.advance({ minutes: 59 })
    await runJobs(app, clock)
    expect(await waiting()).toBe(1)
    clock.advance({ minutes: 2 })
    await runJobs(app, clock)
    expect(await waiting()).toBe(0)
    expect(await app.db.query(sql`select id from jobs where app_id = ${app.tenant.id}`)).toEqual([])
  })

  test.each([
    ['30005', -10],
    ['21610', -2],
    ['30003', null],
  ])('with the error %s leaves the number as %j', async (ErrorCode, expected) => {
    const sid = `SM${newId()}`
    const { id } = await somebody()
    await sent(sid, { subscriptionId: id })
    await status(sid, 'undelivered', { ErrorCode })
    expect(await typesOf(id)).toBe(expected)
  })

  const waiting = async () =>
    (await app.db.query(sql`select reference from sms_receipts where app_id = ${app.tenant.id}`)).length
})

describe('who texts', () => {
  test.each(['STOP', 'stop.', ' Unsubscribe ', 'STOPALL', 'cancel', 'END', 'quit', 'arrêt', 'ARRÊT!'])(
    '%j is unsubscribed at once',
    async (word) => {
      const { phone, id } = await somebody()
      expect((await write(phone, word)).status).toBe(200)
      expect(await typesOf(id)).toBe(-2)
    },
  )

  test.each(['START', 'yes', 'UNSTOP', 'retour'])('%j is subscribed again', async (word) => {
    const { phone, id } = await somebody()
    await write(phone, 'STOP')
    await write(phone, word)
    expect(await typesOf(id)).toBe(1)
  })

  test.each(['please don’t stop', 'HELP', 'Hello', '', 'stopp'])('%j changes nothing', async (text) => {
    const { phone, id } = await somebody()
    expect((await write(phone, text)).status).toBe(200)
    expect(await typesOf(id)).toBe(null)
  })

  test('START does not undo what the app has switched off', async () => {
    const { phone, id } = await somebody({ enabled: false })
    await write(phone, 'START')
    expect(await typesOf(id)).toBe(-31)
  })

  test('what Twilio itself understood goes before the words', async () => {
    const { phone, id } = await somebody()
    await write(phone, 'Basta', { OptOutType: 'STOP' })
    expect(await typesOf(id)).toBe(-2)
  })

  test('STOP is about this app alone, and about known numbers alone', async () => {
    const { phone, id } = await somebody()
    const other = await app.anotherTenant()
    await setSms(app, { ...TWILIO, auth_token: 'another-token' }, other)
    const form = { MessageSid: newId(), From: phone, To: TWILIO.from, Body: 'STOP' }
    expect((await call({ form, appId: other.id, token: 'another-token' })).status).toBe(200)
    expect(await typesOf(id)).toBe(null)
    expect((await write(aPhone(), 'STOP')).status).toBe(200)
    expect((await write('whatsapp:\0', 'STOP')).status).toBe(200)
  })

  test('STOP and START many times at once leave one of them', async () => {
    const { phone, id } = await somebody()
    await Promise.all(Array.from({ length: 10 }, (_, i) => write(phone, i % 2 ? 'STOP' : 'START')))
    await write(phone, 'STOP')
    expect(await typesOf(id)).toBe(-2)
  })
})

describe('what Twilio did not sign', () => {
  const REFUSED = { status: 403, text: '{"errors":["The signature does not fit"]}' }

  test.each<[string, (form: Record<string, string>) => Partial<Call> | Promise<Partial<Call>>]>([
    ['nothing', () => ({ signature: null })],
    ['an empty signature', () => ({ signature: '' })],
    ['rubbish', () => ({ signature: 'AAAA' })],
    ['another token', () => ({ token: 'token-of-another' })],
    ['another address', (form) => ({ signature: twilioSignature(TWILIO.auth_token, `${PUBLIC_URL}/other`, form) })],
    [
      'another form',
      (form) => ({
        signature: twilioSignature(TWILIO.auth_token, `${PUBLIC_URL}/feedback/twilio/${app.tenant.id}`, {
          ...form,
          Body: 'START',
        }),
      }),
    ],
    ['an app without a provider', async () => ({ appId: (await app.anotherTenant()).id })],
    ['an app that is not there', () => ({ appId: newId() })],
    ['an app that cannot be', () => ({ appId: 'x' })],
  ])('unsubscribes nobody: %s', async (_, spoil) => {
    const { phone, id } = await somebody()
    const form = { MessageSid: newId(), From: phone, To: TWILIO.from, Body: 'STOP' }
    expect(await call({ form, ...(await spoil(form)) })).toMatchObject(REFUSED)
    expect(await typesOf(id)).toBe(null)
  })

  test('is refused for an app that speaks SMPP, even with its password as the token', async () => {
    const other = await app.anotherTenant()
    await setSms(app, SMPP, other)
    const form = { MessageSid: newId(), From: aPhone(), Body: 'STOP' }
    expect(await call({ form, appId: other.id, token: SMPP.password })).toMatchObject(REFUSED)
  })

  test('is refused where the server does not know its own address', async () => {
    const nameless = await testApp({ clock, beside: app })
    const form = { MessageSid: newId(), From: aPhone(), Body: 'STOP' }
    try {
      const response = await fetch(`${nameless.url}/feedback/twilio/${app.tenant.id}`, {
        method: 'POST',
        headers: { 'x-twilio-signature': twilioSignature(TWILIO.auth_token, '', form) },
        body: new URLSearchParams(form),
      })
      expect(response.status).toBe(403)
    } finally {
      await nameless.close()
    }
  })

  test('is not read when it is no form, or too large', async () => {
    expect((await call({ form: { Body: 'STOP' }, type: 'application/json' })).status).toBe(415)
    expect((await call({ form: { Body: 'x'.repeat(70_000) } })).status).toBe(413)
  })
})
