import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { runJobs } from '../../../test/events.ts'
import { messagesOf } from '../../../test/messages.ts'
import { aName, anId, aUser, NOBODY } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { findTokenHolders, findTokens } from './store.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const SDK = { authorization: '', accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/ios/050220' }
const sdk = (path: string, method: string, body?: object) => {
  // Requests without a key are counted by the second.
  clock.advanceLease({ seconds: 1 })
  return app.app(path, { method, headers: SDK, ...(body && { body }) })
}

const anIPhone = () => aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName('token') }] })
const enter = (activityId: string, subscriptionId: string | undefined, push_token: string) =>
  sdk(`/live_activities/${encodeURIComponent(activityId)}/token`, 'POST', {
    subscription_id: subscriptionId,
    push_token,
    device_type: 0,
  })
const allow = (type: string, subscriptionId: string | undefined, activity_token: string) =>
  sdk(`/activities/tokens/start/${type}/subscriptions/${subscriptionId}`, 'PUT', { activity_token, device_type: 0 })

const tokensOf = async (purpose: 'start' | 'update', name: string, ids: readonly string[]) =>
  Object.fromEntries(await findTokens(app.db, app.tenant.id, { purpose, name }, ids))

const starting = (fields: object = {}) => ({
  name: 'Your order',
  event: 'start',
  activity_id: aName('activity'),
  event_attributes: { order: 7 },
  event_updates: { status: 'baking' },
  contents: { en: 'On its way' },
  headings: { en: 'Order 7' },
  ...fields,
})
const updating = (fields: object = {}) => ({
  name: 'Baked',
  event: 'update',
  event_updates: { status: 'baked' },
  ...fields,
})
const start = (type: string, body: object) => app.app(`/activities/activity/${type}`, { body })
const update = (id: string, body: object) =>
  app.app(`/live_activities/${encodeURIComponent(id)}/notifications`, { body })

describe('tokens', () => {
  test('are registered, renewed and removed by SDKs, in each of their ways', async () => {
    const { subscriptionIds } = await anIPhone()
    const [id] = subscriptionIds as [string]
    const activity = aName('ключ/a b?')
    expect(await enter(activity, id.toUpperCase(), 'one')).toMatchObject({ status: 200, body: {} })
    expect(await tokensOf('update', activity, [id])).toEqual({ [id]: 'one' })
    await enter(activity, id, 'two')
    expect(await tokensOf('update', activity, [id])).toEqual({ [id]: 'two' })
    const newer = `/activities/tokens/update/${encodeURIComponent(activity)}/subscriptions/${id}`
    expect((await sdk(newer, 'PUT', { token: 'three' })).status).toBe(200)
    expect(await tokensOf('update', activity, [id])).toEqual({ [id]: 'three' })
    const older = `/live_activities/${encodeURIComponent(activity)}/token/${id}`
    expect(await sdk(older, 'DELETE')).toMatchObject({ status: 200, body: {} })
    expect(await tokensOf('update', activity, [id])).toEqual({})
    expect((await sdk(older, 'DELETE')).status).toBe(200)
    await sdk(newer, 'PUT', { activity_token: 'four' })
    expect((await sdk(newer, 'DELETE')).status).toBe(200)
    expect(await tokensOf('update', activity, [id])).toEqual({})

    await allow('Order', id, 'start')
    expect(await tokensOf('start', 'Order', [id])).toEqual({ [id]: 'start' })
    expect((await sdk(`/activities/tokens/start/Order/subscriptions/${id}`, 'DELETE')).status).toBe(200)
    expect(await tokensOf('start', 'Order', [id])).toEqual({})
  })

  test('of a subscription that is not there are refused; they go with their subscription', async () => {
    const activity = aName('activity')
    const missing = { status: 404, body: { errors: ['Subscription not found'] } }
    expect(await enter(activity, NOBODY, 'x')).toMatchObject(missing)
    expect(await allow('Order', NOBODY, 'x')).toMatchObject(missing)
    expect((await enter(activity, 'x', 'x')).status).toBe(400)
    const { subscriptionIds } = await anIPhone()
    expect((await enter(activity, subscriptionIds[0], '')).status).toBe(400)
    expect((await enter('x'.repeat(257), subscriptionIds[0], 'x')).status).toBe(400)
    expect((await sdk(`/activities/tokens/start/Order/subscriptions/${subscriptionIds[0]}`, 'PUT', {})).status).toBe(
      400,
    )
    await enter(activity, subscriptionIds[0], 'x')
    await app.app(`/subscriptions/${subscriptionIds[0]}`, { method: 'DELETE' })
    expect(await tokensOf('update', activity, subscriptionIds)).toEqual({})
  })

  test('of many devices at once are all kept; of one device the newest fifty', async () => {
    const phones = await Promise.all(Array.from({ length: 40 }, anIPhone))
    const activity = aName('match')
    const answers = await Promise.all(phones.map(({ subscriptionIds: [id] }) => enter(activity, id, `token of ${id}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const ids = phones.flatMap(({ subscriptionIds }) => subscriptionIds)
    expect(await tokensOf('update', activity, ids)).toEqual(Object.fromEntries(ids.map((id) => [id, `token of ${id}`])))
    const [one] = ids
    for (let n = 0; n < 55; n++) {
      clock.advance({ seconds: 1 })
      await enter(`activity ${n}`, one, 'x')
    }
    const left = await app.db.query(sql`select name from live_activity_tokens where subscription_id = ${one}`)
    expect(left).toHaveLength(50)
    expect(await tokensOf('update', 'activity 54', [one as string])).toHaveProperty(one as string)
    expect(await tokensOf('update', 'activity 4', [one as string])).toEqual({})
  })

  test('of activities are forgotten after two days, of kinds they stay', async () => {
    const { subscriptionIds } = await anIPhone()
    const activity = aName('activity')
    await enter(activity, subscriptionIds[0], 'x')
    await allow('Old', subscriptionIds[0], 'x')
    clock.advance({ days: 2 })
    await runJobs(app, clock)
    expect(Object.keys(await tokensOf('update', activity, subscriptionIds))).toHaveLength(1)
    clock.advance({ hours: 2 })
    await runJobs(app, clock)
    expect(await tokensOf('update', activity, subscriptionIds)).toEqual({})
    expect(Object.keys(await tokensOf('start', 'Old', subscriptionIds))).toHaveLength(1)
  })
})

describe('start a live activity', () => {
  test('makes a message that is read by its id and stands in no list', async () => {
    const { subscriptionIds, externalId } = await anIPhone()
    const body = starting({ include_subscription_ids: subscriptionIds, stale_date: 1_893_488_400, priority: 5 })
    const answer = await start('Order', body)
    expect(answer).toMatchObject({ status: 201, body: { notification_id: anId() } })
    const id = answer.body.notification_id
    expect(await messagesOf(app).row(id)).toMatchObject({
      channel: 'push',
      kind: 1,
      lane: 'direct',
      name: 'Your order',
      content: { contents: { en: 'On its way' }, headings: { en: 'Order 7' } },
      options: {
        priority: 5,
        platforms: ['iOSPush'],
        frequencyCap: false,
        activity: {
          event: 'start',
          id: body.activity_id,
          type: 'Order',
          attributes: { order: 7 },
          state: { status: 'baking' },
          staleAt: 1_893_488_400,
          at: clock.now().toISOString(),
        },
      },
    })
    expect((await messagesOf(app).view(id)).status).toBe(200)
    const listed = (await messagesOf(app).list()).body.notifications
    expect(listed.map((it: { id: string }) => it.id)).not.toContain(id)
    const byAlias = await start('Order', starting({ include_aliases: { external_id: [externalId] } }))
    expect(byAlias.status).toBe(201)
    const bySegment = await start('Order', starting({ included_segments: ['Subscribed Users'] }))
    expect(bySegment.status).toBe(201)
    expect(await messagesOf(app).row(bySegment.body.notification_id)).toMatchObject({ lane: 'bulk' })
  })

  test('once for each idempotency key', async () => {
    const { subscriptionIds } = await anIPhone()
    const body = starting({ include_subscription_ids: subscriptionIds, idempotency_key: newId() })
    const answers = await Promise.all(Array.from({ length: 5 }, () => start('Order', body)))
    expect(new Set(answers.map((it) => it.body.notification_id)).size).toBe(1)
    expect(answers.filter((it) => it.headers.get('idempotent-replayed') === null)).toHaveLength(1)
    expect(await start('Ride', body)).toMatchObject({
      status: 400,
      body: { errors: ['idempotency_key was used for another request'] },
    })
  })

  test.each<[string, object, RegExp]>([
    ['nobody named', {}, /You must include which players/],
    ['a segment that is not there', { included_segments: ['nowhere'] }, /"nowhere" was not found/],
    ['another event', { included_segments: ['Subscribed Users'], event: 'update' }, /event/],
    ['no name', { included_segments: ['Subscribed Users'], name: undefined }, /name/],
    ['no attributes', { included_segments: ['Subscribed Users'], event_attributes: null }, /event_attributes/],
    ['bad Liquid', { included_segments: ['Subscribed Users'], contents: { en: '{% if' } }, /contents/],
    ['no English', { included_segments: ['Subscribed Users'], contents: { de: 'Hallo' } }, /English/],
    [
      'more than Apple takes',
      { included_segments: ['Subscribed Users'], event_updates: { text: 'x'.repeat(4_100) } },
      /Apple takes 4096/,
    ],
    ['nobody subscribed', { include_subscription_ids: [NOBODY] }, /All included players are not subscribed/],
  ])('%s is refused', async (_, fields, error) => {
    const answer = await start('Order', starting(fields))
    expect(answer).toMatchObject({ status: 400, body: { errors: [expect.stringMatching(error)] } })
  })
})

describe('update a live activity', () => {
  test('goes to all devices that show it', async () => {
    const [one, two] = [await anIPhone(), await anIPhone()]
    await anIPhone()
    const activity = aName('activity')
    for (const { subscriptionIds } of [one, two]) await enter(activity, subscriptionIds[0], 'x')
    const answer = await update(activity, updating({ ios_relevance_score: 50, sound: 'bell.caf' }))
    expect(answer).toMatchObject({ status: 200, body: { id: anId() } })
    const row = await messagesOf(app).row(answer.body.id)
    expect(row).toMatchObject({
      lane: 'direct',
      audience: { kind: 'subscriptions' },
      content: { ios_sound: 'bell.caf' },
      options: { activity: { event: 'update', id: activity, state: { status: 'baked' }, relevanceScore: 50 } },
    })
    const holders = await findTokenHolders(app.db, app.tenant.id, { purpose: 'update', name: activity }, 10)
    expect(row).toMatchObject({ audience: { ids: holders } })
    expect(holders.sort()).toEqual([...one.subscriptionIds, ...two.subscriptionIds].sort())
    const ended = await update(activity, updating({ event: 'end', dismissal_date: 1_893_488_400 }))
    expect(await messagesOf(app).row(ended.body.id)).toMatchObject({
      options: { activity: { event: 'end', dismissAt: 1_893_488_400 } },
    })
  })

  test('that no device shows, or that is wrong, is refused; a retry is answered all the same', async () => {
    const activity = aName('activity')
    expect(await update(activity, updating())).toMatchObject({
      status: 400,
      body: { errors: ['No device shows this live activity'] },
    })
    const { subscriptionIds } = await anIPhone()
    await enter(activity, subscriptionIds[0], 'x')
    for (const fields of [{ event: 'start' }, { dismissal_date: 1 }, { event_updates: null }, { priority: 11 }])
      expect((await update(activity, updating(fields))).status).toBe(400)
    const body = updating({ idempotency_key: newId() })
    const first = await update(activity, body)
    await sdk(`/live_activities/${activity}/token/${subscriptionIds[0]}`, 'DELETE')
    const again = await update(activity, body)
    expect([again.status, again.body]).toEqual([200, first.body])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })
})
