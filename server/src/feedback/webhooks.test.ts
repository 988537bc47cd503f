import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { aDelivery, aMessage } from '../../test/deliveries.ts'
import { runJobs } from '../../test/events.ts'
import { type Answer, type HttpSink, type Received, startHttpSink } from '../../test/sinks/http.ts'
import { setSms, TWILIO, twilioSignature } from '../../test/sms.ts'
import { anId, aPhone, told } from '../../test/users.ts'
import { type Outbound, openOutbound } from '../channels/outbound.ts'
import { openWebhooks } from '../channels/webhook/webhook.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { DeliveryEvent } from '../messages/feedback/delivery-event.ts'
import {
  findWantedEvents,
  insertDeliveryEvents,
  insertUnknownEvent,
} from '../messages/feedback/delivery-event-store.ts'
import { createQueue } from '../queue/enqueue.ts'
import { MAX_ATTEMPTS } from '../queue/retry.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import { certificateFor } from '../sink/certificate.ts'
import { sql } from '../storage/sql.ts'
import { SEND_EVENT_WEBHOOKS } from './send-event-webhooks.ts'

const PUBLIC_URL = 'https://bell.example'
const HOST = 'https://hook.example'
const clock = virtualClock('2030-03-15T09:00:00Z')
let app: TestApp
let sink: HttpSink
let outbound: Outbound
let sendWebhook: SendWebhook
let tenant: Tenant
/** How the receiver at a path answers; otherwise it is content. */
const answers = new Map<string, (request: Received) => Answer | Promise<Answer>>()

beforeAll(async () => {
  const tls = certificateFor('hook.example')
  sink = await startHttpSink((request) => answers.get(request.path)?.(request) ?? { status: 200, body: 'thanks' }, {
    tls,
  })
  const settings = { route: { ca: tls.cert, connect: { [HOST]: { host: '127.0.0.1', port: sink.port } } } }
  outbound = openOutbound(settings)
  const channel = openWebhooks({ outbound, clock })
  sendWebhook = async (item) => (await channel.send([item]))[0] as never
  app = await testApp({ clock, providers: { outbound: settings }, publicUrl: PUBLIC_URL })
})
afterAll(async () => {
  await app.close()
  await outbound.close()
  await sink.stop()
})
beforeEach(async () => {
  tenant = await app.anotherTenant()
  answers.clear()
  sink.received.length = 0
})

const headers = () => ({ authorization: `Key ${tenant.organizationKey}` })
const at = (path = '') => `/apps/${tenant.id}/event_webhooks${path}`
const ask = (path: string, method: string, body?: object) =>
  app.request(at(path), { method, headers: headers(), ...(body && { body }) })
async function aWebhook(kinds: string[] = ['received', 'clicked'], path = '/all') {
  const { status, body } = await ask('', 'POST', { url: `${HOST}${path}`, kinds })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body as { id: string; secret: string }
}
const view = async ({ id }: { id: string }) => (await ask(`/${id}`, 'GET')).body
const work = () => runJobs(app, clock, 400, sendWebhook)
/** What was waiting is told now, and what the schedule finds later as well. */
const tick = async (step: Parameters<typeof clock.advance>[0] = { seconds: 5 }) => {
  clock.advance(step)
  await work()
}
const waiting = async () => (await app.db.query(sql`select id from delivery_events where app_id = ${tenant.id}`)).length

const anEvent = (more: Partial<DeliveryEvent> = {}): DeliveryEvent => ({
  kind: 'clicked',
  at: clock.now(),
  messageId: newId(),
  subscriptionId: newId(),
  userId: newId(),
  platform: 'ChromePush',
  ...more,
})
const happen = (...events: DeliveryEvent[]) => insertDeliveryEvents(app.db, tenant.id, events)
const requestsTo = (path: string) => sink.received.filter((it) => it.path === path)
const eventsOf = ({ body }: Received) => JSON.parse(body).data.events
const toldTo = (path: string) => requestsTo(path).flatMap(eventsOf)
/** The standard's own library signs it; its judge would also look at a clock that is not ours. */
function read({ headers, body }: Received, secret: string) {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures } = headers
  const expected = new Webhook(secret).sign(String(id), new Date(Number(seconds) * 1000), body)
  expect(String(signatures).split(' ')).toContain(expected)
  return JSON.parse(body)
}

describe('event webhooks', () => {
  test('are made, shown without their secret, changed and deleted', async () => {
    const made = await ask('', 'POST', { url: `${HOST}/all`, kinds: ['clicked', 'received', 'clicked'] })
    const now = clock.now().toISOString()
    const shown = {
      id: anId(),
      url: `${HOST}/all`,
      kinds: ['clicked', 'received'],
      enabled: true,
      disabled_at: null,
      disabled_reason: null,
      failing_since: null,
      last_failure: null,
      next_try_at: null,
      dropped_events: 0,
      created_at: now,
      updated_at: now,
    }
    expect(told(made)).toEqual({ status: 201, body: { ...shown, secret: expect.stringMatching(/^whsec_/) } })
    const { id, secret } = made.body
    expect((await ask('', 'GET')).body).toEqual({ event_webhooks: [shown] })
    const [stored] = await app.db.query(sql`select * from event_webhooks where app_id = ${tenant.id}`)
    expect(JSON.stringify(stored)).not.toContain(secret.slice(6, 30))
    clock.advance({ minutes: 1 })
    const changed = await ask(`/${id}`, 'PATCH', { kinds: ['sent'], enabled: false })
    const then = clock.now().toISOString()
    const after = { ...shown, kinds: ['sent'], enabled: false, updated_at: then }
    expect(told(changed)).toEqual({
      status: 200,
      body: { ...after, disabled_at: then, disabled_reason: 'switched off' },
    })
    expect((await ask(`/${id}`, 'PATCH', { enabled: true })).body).toEqual({ ...after, enabled: true })
    expect(told(await ask(`/${id}`, 'DELETE'))).toEqual({ status: 200, body: { success: true } })
    expect(told(await ask(`/${id}`, 'DELETE'))).toEqual({ status: 404, body: { errors: ['Event webhook not found'] } })
    const audit = await app.db.query<{ action: string }>(sql`
      select action from audit_log where app_id = ${tenant.id} and target_type = 'event_webhook' order by at, action`)
    expect(audit.map(({ action }) => action)).toEqual([
      'event_webhook.create',
      'event_webhook.delete',
      'event_webhook.update',
      'event_webhook.update',
    ])
  })

  test.each<[object]>([
    [{ url: `${HOST}/`, kinds: [] }],
    [{ url: `${HOST}/`, kinds: ['sneezed'] }],
    [{ url: `${HOST}/` }],
    [{ kinds: ['sent'] }],
    [{ url: 'http://hook.example/', kinds: ['sent'] }],
    [{ url: 'ftp://hook.example/', kinds: ['sent'] }],
    [{ url: 'https://me:word@hook.example/', kinds: ['sent'] }],
    [{ url: 'hook', kinds: ['sent'] }],
    [{ url: `${HOST}/${'x'.repeat(2_050)}`, kinds: ['sent'] }],
  ])('are refused: %j', async (body) => {
    expect((await ask('', 'POST', body)).status).toBe(400)
    expect((await ask('', 'GET')).body).toEqual({ event_webhooks: [] })
  })

  test('are twenty at most, also of many made at once', async () => {
    const made = await Promise.all(
      Array.from({ length: 25 }, () => ask('', 'POST', { url: `${HOST}/all`, kinds: ['sent'] })),
    )
    expect(made.filter(({ status }) => status === 201)).toHaveLength(20)
    expect(made.filter(({ status }) => status === 409)).toHaveLength(5)
  })
})

describe('what happens', () => {
  test('to deliveries that nobody knows about is told once for their message, with their count', async () => {
    const { secret } = await aWebhook(['message.unknown', 'clicked'], '/all')
    await aWebhook(['clicked'], '/clicks')
    const messageId = newId()
    const at = clock.now()
    await insertUnknownEvent(app.db, tenant.id, { messageId, count: 1_200, at })
    await tick()
    const [request, ...more] = requestsTo('/all')
    const nobody = { subscription_id: null, onesignal_id: null, subscription_type: null }
    expect(read(request as Received, secret).data.events).toEqual([
      {
        ...{ id: anId(), kind: 'message.unknown', at: at.toISOString(), message_id: messageId },
        ...{ ...nobody, reason: null, count: 1_200 },
      },
    ])
    expect([more, requestsTo('/clicks')]).toEqual([[], []])
  })

  test('is told in order, signed, each receiver what it wants', async () => {
    const all = await aWebhook(['received', 'clicked'], '/all')
    const clicks = await aWebhook(['clicked'], '/clicks')
    expect(await findWantedEvents(app.db, tenant.id)).toEqual(new Set(['received', 'clicked']))
    const message = await aMessage(app, clock.now(), { appId: tenant.id })
    const userId = newId()
    const subscription = await aDelivery(app, message, { appId: tenant.id, userId })
    const report = (path: string, more: object = {}) =>
      app.request(`/notifications/${message.id}${path}`, {
        method: 'PUT',
        body: { app_id: tenant.id, player_id: subscription, ...more },
      })
    await report('/report_received')
    await report('/report_received')
    clock.advance({ seconds: 1 })
    await report('', { opened: true })
    await report('', { opened: true })
    await tick()
    const [request] = requestsTo('/all')
    const event = (kind: string) => ({
      id: anId(),
      kind,
      at: expect.any(String),
      message_id: message.id,
      subscription_id: subscription,
      onesignal_id: userId,
      subscription_type: 'ChromePush',
      reason: null,
    })
    expect(read(request as Received, all.secret)).toEqual({
      type: 'message.events',
      timestamp: expect.any(String),
      data: { app_id: tenant.id, events: [event('received'), event('clicked')] },
    })
    const [other] = requestsTo('/clicks')
    expect(read(other as Received, clicks.secret)).toMatchObject({ data: { events: [event('clicked')] } })
    expect(() => read(other as Received, all.secret)).toThrow()
    // One event has one id, whoever is told.
    expect(toldTo('/clicks')[0].id).toBe(toldTo('/all')[1].id)
    expect(sink.received).toHaveLength(2)
    expect(await waiting()).toBe(0)
  })

  test('is told to nobody where nobody asked, and not to another app’s receiver', async () => {
    await aWebhook(['sent'])
    const other = await app.anotherTenant()
    await happen(anEvent({ kind: 'clicked' }))
    await insertDeliveryEvents(app.db, other.id, [anEvent({ kind: 'sent' })])
    expect(await waiting()).toBe(0)
    expect(await findWantedEvents(app.db, other.id)).toEqual(new Set())
    await tick()
    expect(sink.received).toEqual([])
  })

  test('travels in requests of a hundred', async () => {
    await aWebhook(['clicked'])
    await happen(...Array.from({ length: 250 }, (_, i) => anEvent({ at: new Date(clock.now().getTime() + i) })))
    await tick()
    expect(requestsTo('/all').map((it) => eventsOf(it).length)).toEqual([100, 100, 50])
    const times = toldTo('/all').map((event) => event.at)
    expect(times).toEqual([...times].sort())
    expect(new Set(requestsTo('/all').map(({ headers }) => headers['webhook-id'])).size).toBe(3)
  })

  test('more than a turn’s worth is told in several', async () => {
    await aWebhook(['clicked'])
    await happen(...Array.from({ length: 2_050 }, () => anEvent()))
    await tick()
    expect(toldTo('/all')).toHaveLength(2_050)
    expect(new Set(toldTo('/all').map(({ id }) => id)).size).toBe(2_050)
  })

  test('includes that somebody texted to stop', async () => {
    const webhook = await aWebhook(['unsubscribed', 'delivered', 'failed'])
    await setSms(app, TWILIO, tenant)
    const phone = aPhone()
    const user = await app.request(`/apps/${tenant.id}/users`, {
      headers: { authorization: `Key ${tenant.key}` },
      body: { subscriptions: [{ type: 'SMS', token: phone }] },
    })
    const message = await aMessage(app, clock.now(), { appId: tenant.id, channel: 'sms' })
    const subscriptionId = user.body.subscriptions[0].id
    const [yes, no] = [`SM${newId()}`, `SM${newId()}`]
    await aDelivery(app, message, { appId: tenant.id, platform: 'SMS', providerRef: yes, subscriptionId })
    await aDelivery(app, message, { appId: tenant.id, platform: 'SMS', providerRef: no })
    const forms: Record<string, string>[] = [
      { MessageSid: yes, MessageStatus: 'delivered' },
      { MessageSid: no, MessageStatus: 'undelivered', ErrorCode: '30007' },
      { MessageSid: newId(), From: phone, To: TWILIO.from, Body: 'Stop' },
    ]
    for (const form of forms) {
      const path = `/feedback/twilio/${tenant.id}`
      const response = await fetch(`${app.url}${path}`, {
        method: 'POST',
        headers: { 'x-twilio-signature': twilioSignature(TWILIO.auth_token, `${PUBLIC_URL}${path}`, form) },
        body: new URLSearchParams(form),
      })
      expect(response.status).toBe(200)
      clock.advance({ seconds: 1 })
    }
    await tick()
    const ids = { message_id: message.id, subscription_id: subscriptionId }
    expect(toldTo('/all')).toMatchObject([
      { kind: 'delivered', ...ids, subscription_type: 'SMS' },
      { kind: 'failed', message_id: message.id, reason: 'filtered by the carrier' },
      { kind: 'unsubscribed', subscription_id: subscriptionId, message_id: null, reason: 'texted to stop' },
    ])
    expect(read(requestsTo('/all')[0] as Received, webhook.secret)).toBeTruthy()
  })
})

describe('a receiver that fails', () => {
  test('gets the same request again, under the same id, after longer and longer pauses', async () => {
    const webhook = await aWebhook(['clicked'])
    answers.set('/all', () => ({ status: 503 }))
    await happen(anEvent())
    await tick()
    const since = clock.now().toISOString()
    expect(await view(webhook)).toMatchObject({
      enabled: true,
      failing_since: since,
      last_failure: 'status 503',
      next_try_at: new Date(clock.now().getTime() + 5_000).toISOString(),
    })
    // What comes meanwhile waits behind it, and does not change it.
    await happen(anEvent({ at: new Date(clock.now().getTime() - 60_000) }))
    await work()
    expect(sink.received).toHaveLength(1)
    answers.set('/all', () => 'half')
    await tick()
    await tick()
    expect(sink.received).toHaveLength(2)
    answers.clear()
    await tick()
    const [first, second, third, fourth] = sink.received
    expect([second?.body, third?.body]).toEqual([first?.body, first?.body])
    expect(new Set([first, second, third].map((it) => it?.headers['webhook-id'])).size).toBe(1)
    expect(fourth?.headers['webhook-id']).not.toBe(first?.headers['webhook-id'])
    expect(eventsOf(fourth as Received)).toHaveLength(1)
    expect(await view(webhook)).toMatchObject({ failing_since: null, last_failure: null, next_try_at: null })
    expect(await waiting()).toBe(0)
  })

  test('holds up nobody else', async () => {
    await aWebhook(['clicked'], '/bad')
    await aWebhook(['clicked'], '/good')
    answers.set('/bad', () => ({ status: 500 }))
    await happen(anEvent())
    await tick()
    await happen(anEvent())
    await tick()
    expect(toldTo('/good')).toHaveLength(2)
    expect(await waiting()).toBe(2)
  })

  test('may ask for a longer pause', async () => {
    const webhook = await aWebhook(['clicked'])
    answers.set('/all', () => ({ status: 429, headers: { 'retry-after': '600' } }))
    await happen(anEvent())
    await tick()
    expect((await view(webhook)).next_try_at).toBe(new Date(clock.now().getTime() + 600_000).toISOString())
  })

  test('is given up when it says that it is gone, and everybody is told', async () => {
    const webhook = await aWebhook(['clicked'])
    answers.set('/all', () => ({ status: 410 }))
    await happen(anEvent(), anEvent())
    await tick()
    expect(await view(webhook)).toMatchObject({ enabled: false, disabled_reason: 'gone' })
    expect(await waiting()).toBe(0)
    const notices = await app.request(`/apps/${tenant.id}/notices`, { headers: headers() })
    expect(notices.body.notices).toMatchObject([
      { kind: 'event_webhook.disabled', detail: { webhook_id: webhook.id, reason: 'gone' } },
    ])
    const audit = await app.db.query(sql`
      select actor_kind, detail from audit_log where app_id = ${tenant.id} and action = 'event_webhook.disable'`)
    expect(audit).toEqual([{ actorKind: 'system', detail: { reason: 'gone' } }])
    await happen(anEvent())
    expect(await waiting()).toBe(0)
    expect(await findWantedEvents(app.db, tenant.id)).toEqual(new Set())
    answers.clear()
    await ask(`/${webhook.id}`, 'PATCH', { enabled: true })
    await happen(anEvent())
    await tick()
    expect(toldTo('/all')).toHaveLength(3)
  })

  test('loses what is older than a day, and is given up after three without a success', async () => {
    const webhook = await aWebhook(['clicked'])
    answers.set('/all', () => ({ status: 404 }))
    await happen(anEvent())
    await tick()
    await tick({ hours: 25 })
    expect(await view(webhook)).toMatchObject({ enabled: true, dropped_events: 1 })
    expect(await waiting()).toBe(0)
    await happen(anEvent())
    await tick({ hours: 46 })
    expect(await view(webhook)).toMatchObject({ enabled: true, dropped_events: 2 })
    await happen(anEvent())
    await tick({ hours: 2 })
    expect(await view(webhook)).toMatchObject({
      enabled: false,
      disabled_reason: 'failing',
      last_failure: 'status 404',
    })
    expect(await waiting()).toBe(0)
  })

  test('on loopback or in a network of ours is never reached', async () => {
    for (const url of [
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://10.0.0.1/',
      'https://169.254.169.254/',
      'https://2130706433/',
    ]) {
      const { body } = await ask('', 'POST', { url, kinds: ['clicked'] })
      expect((await ask(`/${body.id}/test`, 'POST')).body).toEqual({ success: false, reason: 'address not allowed' })
    }
    await happen(anEvent())
    await tick()
    const { body } = await ask('', 'GET')
    for (const { last_failure } of body.event_webhooks) expect(last_failure).toBe('address not allowed')
  })
})

describe('a webhook that goes', () => {
  test('takes with it what it was not told, also what was written in that moment', async () => {
    const webhook = await aWebhook(['clicked'])
    await happen(anEvent())
    await ask(`/${webhook.id}`, 'DELETE')
    await work()
    expect(await waiting()).toBe(0)
    await app.db.query(sql`
      insert into delivery_events (app_id, webhook_id, at, id, kind, subscription_id, user_id, platform)
      values (${tenant.id}, ${webhook.id}, ${clock.now()}, ${newId()}, 'sent', ${newId()}, ${newId()}, 'SMS')`)
    await tick({ hours: 49 })
    expect(await waiting()).toBe(0)
    expect(sink.received).toEqual([])
  })

  test('or is switched off keeps nothing for later', async () => {
    const webhook = await aWebhook(['clicked'])
    await happen(anEvent())
    await ask(`/${webhook.id}`, 'PATCH', { enabled: false })
    await work()
    expect(await waiting()).toBe(0)
  })
})

describe('its secret', () => {
  test('is replaced while the one before signs too, for a day', async () => {
    const { id, secret } = await aWebhook(['clicked'])
    const { body } = await ask(`/${id}/rotate`, 'POST')
    expect(body.secret).not.toBe(secret)
    await ask(`/${id}/test`, 'POST')
    const [request] = sink.received
    expect([read(request as Received, secret), read(request as Received, body.secret)]).toHaveLength(2)
    const [row] = await app.db.query<{ previousUntil: Date }>(sql`
      select previous_until from event_webhooks where app_id = ${tenant.id} and id = ${id}`)
    expect(row?.previousUntil.getTime()).toBe(clock.now().getTime() + 86_400_000)
    clock.advance({ days: 1 })
    await ask(`/${id}/test`, 'POST')
    expect(String(sink.received[1]?.headers['webhook-signature']).split(' ')).toHaveLength(1)
  })
})

test('a webhook is tried with a signed request that says so', async () => {
  const { id, secret } = await aWebhook(['clicked'])
  expect(told(await ask(`/${id}/test`, 'POST'))).toEqual({ status: 200, body: { success: true, reason: null } })
  expect(read(sink.received[0] as Received, secret)).toMatchObject({ type: 'test', data: { webhook_id: id } })
  answers.set('/all', () => ({ status: 500, body: 'a secret of the receiver' }))
  expect((await ask(`/${id}/test`, 'POST')).body).toEqual({ success: false, reason: 'status 500' })
  expect(await view({ id })).toMatchObject({ failing_since: null })
})

test('two workers tell everything once', async () => {
  await aWebhook(['clicked'])
  await happen(...Array.from({ length: 500 }, () => anEvent()))
  clock.advance({ seconds: 5 })
  await Promise.all([work(), work()])
  await work()
  const ids = toldTo('/all').map(({ id }) => id)
  expect(ids).toHaveLength(500)
  expect(new Set(ids).size).toBe(500)
})

test('a webhook that was told something is not suspected for servers that were killed meanwhile', async () => {
  const { id } = await aWebhook(['clicked'])
  await happen(...Array.from({ length: 150 }, () => anEvent()))
  await createQueue({ clock, newId }).enqueue(app.db, [{ appId: tenant.id, name: SEND_EVENT_WEBHOOKS, key: id }])
  await app.db.query(sql`update jobs set crashes = 4 where app_id = ${tenant.id} and name = ${SEND_EVENT_WEBHOOKS}`)
  const crashes: Promise<object[]>[] = []
  answers.set('/all', () => {
    crashes.push(
      app.db.query(sql`select crashes from jobs where app_id = ${tenant.id} and name = ${SEND_EVENT_WEBHOOKS}`),
    )
    return { status: 200 }
  })
  await work()
  expect(crashes).toHaveLength(2)
  expect(await crashes[1]).toEqual([{ crashes: 0 }])
})

test('a webhook job that failed for the last time is dropped, and later events are told all the same', async () => {
  const { id } = await aWebhook(['clicked'])
  await happen(anEvent())
  const breakDown: SendWebhook = () => Promise.reject(new Error('a fault of ours'))
  await createQueue({ clock, newId }).enqueue(app.db, [{ appId: tenant.id, name: SEND_EVENT_WEBHOOKS, key: id }])
  await app.db.query(sql`
    update jobs set attempts = ${MAX_ATTEMPTS - 1} where app_id = ${tenant.id} and name = ${SEND_EVENT_WEBHOOKS}`)
  await runJobs(app, clock, 400, breakDown)
  expect(
    await app.db.query(sql`select state from jobs where app_id = ${tenant.id} and name = ${SEND_EVENT_WEBHOOKS}`),
  ).toEqual([])
  expect(await waiting()).toBe(1)
  await happen(anEvent())
  await tick({ minutes: 1 })
  expect(toldTo('/all')).toHaveLength(2)
})
