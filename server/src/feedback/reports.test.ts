import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Answer, type TestApp, testApp } from '../../test/app.ts'
import { aDelivery, aMessage, factsOf, type MadeMessage } from '../../test/deliveries.ts'
import { told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { dropMonths } from '../storage/partitions.ts'
import { sql } from '../storage/sql.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const NOTED = { status: 200, body: { success: true } }
const put = async (path: string, body: unknown, headers = {}) => {
  const response = await fetch(`${app.url}${path}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json;charset=UTF-8', ...headers },
    body: JSON.stringify(body),
  })
  const answer: Answer = { status: response.status, body: await response.json(), headers: response.headers }
  return answer
}
const about = (subscriptionId: string, appId: string = app.tenant.id) => ({
  app_id: appId,
  player_id: subscriptionId,
  device_type: 5,
})
const received = ({ id }: { id: string }, subscriptionId: string, appId?: string) =>
  put(`/notifications/${id}/report_received`, about(subscriptionId, appId))
const opened = ({ id }: { id: string }, subscriptionId: string, more: object = {}) =>
  put(`/notifications/${id}`, { ...about(subscriptionId), opened: true, ...more })

const timesOf = async ({ id }: MadeMessage, subscriptionId: string) => {
  const [row] = await app.db.query<{ receivedAt: Date | null; clickedAt: Date | null }>(sql`
    select received_at, clicked_at from deliveries
    where app_id = ${app.tenant.id} and message_id = ${id} and subscription_id = ${subscriptionId}`)
  return [row?.receivedAt?.toISOString(), row?.clickedAt?.toISOString()]
}

describe('a message that arrived', () => {
  test('is noted with its time, once, and counted once', async () => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message)
    const first = clock.now().toISOString()
    expect(told(await received(message, subscription))).toEqual(NOTED)
    clock.advance({ minutes: 1 })
    expect(told(await received(message, subscription))).toEqual(NOTED)
    expect(await timesOf(message, subscription)).toEqual([first, undefined])
    expect(await factsOf(app, message)).toEqual({ 'ChromePush received': 1 })
  })

  test('may be told of before the provider has answered, in any case of the ids, under /api/v1 and by scripts of any site', async () => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message, { state: 'pending' })
    const path = `/api/v1/notifications/${message.id.toUpperCase()}/report_received`
    const answer = await put(path, about(subscription.toUpperCase(), app.tenant.id.toUpperCase()), {
      origin: 'https://shop.example',
    })
    expect(told(answer)).toEqual(NOTED)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(await factsOf(app, message)).toEqual({ 'ChromePush received': 1 })
  })

  test('is counted by platform, and many at once are counted each once', async () => {
    const message = await aMessage(app, clock.now())
    const other = await aMessage(app, clock.now())
    const web = await Promise.all(Array.from({ length: 40 }, () => aDelivery(app, message)))
    const ios = await Promise.all(Array.from({ length: 20 }, () => aDelivery(app, message, { platform: 'iOSPush' })))
    const elsewhere = await Promise.all(Array.from({ length: 10 }, () => aDelivery(app, other)))
    const all = [...web, ...ios]
    const answers = await Promise.all([
      ...[...all, ...all, ...all].map((subscription) => received(message, subscription)),
      ...[...elsewhere, ...elsewhere].map((subscription) => received(other, subscription)),
    ])
    expect(answers.map(told)).toEqual(answers.map(() => NOTED))
    expect(await factsOf(app, message)).toEqual({ 'ChromePush received': 40, 'iOSPush received': 20 })
    expect(await factsOf(app, other)).toEqual({ 'ChromePush received': 10 })
  })

  test('is counted once by two servers that hear of it in the same moment', async () => {
    const second = await testApp({ clock, beside: app })
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message)
    const tell = (url: string) =>
      fetch(`${url}/notifications/${message.id}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...about(subscription), opened: true }),
      })
    const held = (db: Db) =>
      db.query(sql`
        select 1 from deliveries where app_id = ${app.tenant.id} and message_id = ${message.id} for update`)
    const waiting = () =>
      app.db.query(sql`
        select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    try {
      let answers: Promise<Response[]> | undefined
      await app.db.transaction(async (db) => {
        await held(db)
        answers = Promise.all([tell(app.url), tell(second.url)])
        await vi.waitFor(async () => expect(await waiting()).toHaveLength(2), 3_000)
      })
      expect((await answers)?.map(({ status }) => status)).toEqual([200, 200])
      expect(await factsOf(app, message)).toEqual({ 'ChromePush clicked': 1, 'ChromePush clicks': 2 })
    } finally {
      await second.close()
    }
  })
})

describe('a message that was opened', () => {
  test('is noted once; each click is counted as well', async () => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message, { state: 'unknown' })
    const first = clock.now().toISOString()
    expect(told(await opened(message, subscription))).toEqual(NOTED)
    clock.advance({ minutes: 1 })
    await Promise.all([opened(message, subscription), opened(message, subscription)])
    expect(await timesOf(message, subscription)).toEqual([undefined, first])
    expect(await factsOf(app, message)).toEqual({ 'ChromePush clicked': 1, 'ChromePush clicks': 3 })
  })

  test('says nothing without opened: true', async () => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message)
    for (const value of [false, null, undefined, 'true', 1])
      expect(told(await opened(message, subscription, { opened: value }))).toEqual(NOTED)
    expect(await factsOf(app, message)).toEqual({})
  })
})

describe('what is not there', () => {
  test('is answered as what is: nobody learns of a message, a subscription or an app', async () => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message)
    const stranger = await app.anotherTenant()
    expect(told(await received(message, newId()))).toEqual(NOTED)
    expect(told(await received({ id: newId() }, subscription))).toEqual(NOTED)
    expect(told(await received(message, subscription, stranger.id))).toEqual(NOTED)
    expect(told(await received(message, subscription, newId()))).toEqual(NOTED)
    expect(await timesOf(message, subscription)).toEqual([undefined, undefined])
    expect(await factsOf(app, message)).toEqual({})
  })

  test.each(['failed', 'skipped', 'expired', 'canceled'])('counts for nothing: %s', async (state) => {
    const message = await aMessage(app, clock.now())
    const subscription = await aDelivery(app, message, { state })
    expect(told(await received(message, subscription))).toEqual(NOTED)
    expect(await factsOf(app, message)).toEqual({})
  })

  test('includes what is so old that its month is gone, and what has no deliveries yet', async () => {
    const message = await aMessage(app, new Date('2020-05-10T00:00:00Z'))
    const subscription = await aDelivery(app, message)
    await dropMonths(app.db, 'deliveries', new Date('2020-07-01T00:00:00Z'))
    expect(told(await received(message, subscription))).toEqual(NOTED)
    const waiting = await aMessage(app, clock.now())
    await app.db.query(sql`
      update messages set expand_at = null, state = 'scheduled' where app_id = ${app.tenant.id} and id = ${waiting.id}`)
    expect(told(await received(waiting, subscription))).toEqual(NOTED)
  })
})

test.each([
  ['no app', { player_id: newId() }],
  ['no subscription', { app_id: newId() }],
  ['an app that is no id', { app_id: 'x', player_id: newId() }],
  ['a subscription that is no id', { app_id: newId(), player_id: 7 }],
])('a report with %s is refused', async (_, body) => {
  const answer = await put(`/notifications/${newId()}/report_received`, body)
  expect(answer.status).toBe(400)
  expect(answer.body.errors).toEqual([expect.any(String)])
})

test('a report for what is no message id, or with a large body, is refused', async () => {
  expect((await put('/notifications/x', { ...about(newId()), opened: true })).status).toBe(400)
  expect((await put(`/notifications/${newId()}`, { ...about(newId()), more: 'x'.repeat(5_000) })).status).toBe(413)
})
