// When users were first and last there, as whoever imports them says, is what segments and delivery go by.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { closeRenderer, deliveriesOf, fakeSender } from '../../test/engine.ts'
import { messagesOf, saying } from '../../test/messages.ts'
import { aSegment } from '../../test/segments.ts'
import { aName, aUser, type MadeUser } from '../../test/users.ts'
import { aWorker } from '../../test/worker.ts'
import { virtualClock } from '../lib/clock.ts'
import { sql } from '../storage/sql.ts'

const NOW = '2030-01-01T12:00:00Z'
const clock = virtualClock(NOW)
let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})

const ago = (hours: number) => Math.floor(clock.now().getTime() / 1_000) - hours * 3_600
const push = () => ({ type: 'AndroidPush', token: aName('token') })

/** Whether each subscription is in a segment with this filter. */
async function matches(
  user: { id: string },
  field: 'last_session' | 'first_session',
  relation: '>' | '<',
  hours: number,
) {
  const id = await aSegment(app, [{ field, relation, hours_ago: String(hours) }])
  const { body } = await app.app(`/segments/${id}/explain?alias_label=onesignal_id&alias_id=${user.id}`)
  return body.subscriptions.map((it: { matches: boolean }) => it.matches)
}

/** Of the user's subscriptions, in hours before now. */
async function activity(user: { id: string }) {
  const found = await app.db.query<{ first: number; last: number }>(sql`
    select extract(epoch from ${clock.now()}::timestamptz - s.created_at)::integer / 3600 as first,
      extract(epoch from ${clock.now()}::timestamptz - coalesce(t.last_active, s.created_at))::integer / 3600 as last
    from subscriptions s
    left join subscription_activity t on t.app_id = s.app_id and t.subscription_id = s.id
    where s.app_id = ${app.tenant.id} and s.user_id = ${user.id} order by s.id`)
  return found
}

const update = (user: MadeUser, body: object, headers: Record<string, string> = {}) =>
  app.app(user.path, { method: 'PATCH', body, headers })

describe('create user', () => {
  test('last_active and first_active are those of the subscriptions that it makes', async () => {
    const user = await aUser(app, {
      properties: { first_active: ago(500), last_active: ago(200) },
      subscriptions: [push(), push()],
    })
    expect(await activity(user)).toEqual([
      { first: 500, last: 200 },
      { first: 500, last: 200 },
    ])
    expect(await matches(user, 'last_session', '>', 168)).toEqual([true, true])
    expect(await matches(user, 'last_session', '<', 201)).toEqual([true, true])
    expect(await matches(user, 'first_session', '>', 499)).toEqual([true, true])
    expect(await matches(user, 'first_session', '<', 168)).toEqual([false, false])
  })

  test('last_active says at what time of day last-active delivery comes', async () => {
    const { subscriptionIds } = await aUser(app, { properties: { last_active: ago(200) }, subscriptions: [push()] })
    const include_subscription_ids = subscriptionIds
    const id = await messagesOf(app).sent(saying({ include_subscription_ids, delayed_option: 'last-active' }))
    await aWorker(app, clock, { sender: fakeSender() }).runDue()
    const due = (await deliveriesOf(app.db, app.tenant.id, id)).map(({ dueAt }) => dueAt.toISOString())
    // 200 hours ago it was four in the morning.
    expect(due).toEqual(['2030-01-02T04:00:00.000Z'])
  })

  test('one without the other', async () => {
    const first = await aUser(app, { properties: { first_active: ago(500) }, subscriptions: [push()] })
    expect(await activity(first)).toEqual([{ first: 500, last: 0 }])
    const last = await aUser(app, { properties: { last_active: ago(200) }, subscriptions: [push()] })
    expect(await activity(last)).toEqual([{ first: 0, last: 200 }])
  })

  test('of a user who is known: last_active is that of the subscriptions that are named', async () => {
    const [old, other] = [push(), push()]
    const user = await aUser(app, { subscriptions: [old, other] })
    const identity = { external_id: user.externalId }
    const answer = await app.app('/users', {
      body: { identity, properties: { first_active: ago(500), last_active: ago(200) }, subscriptions: [old] },
    })
    expect(answer.status).toBe(202)
    expect((await activity(user)).sort((a, b) => a.last - b.last)).toEqual([
      { first: 0, last: 0 },
      { first: 0, last: 200 },
    ])
  })
})

describe('update user', () => {
  test('a session without a subscription refreshes the user with all subscriptions, and counts for none of them', async () => {
    const user = await aUser(app, { properties: { last_active: ago(200) }, subscriptions: [push(), push()] })
    expect(await matches(user, 'last_session', '<', 1)).toEqual([false, false])
    const { status, body } = await update(user, { deltas: { session_count: 1 } })
    expect([status, body.properties]).toMatchObject([202, { last_active: ago(0), session_count: 1 }])
    expect(await matches(user, 'last_session', '<', 1)).toEqual([true, true])
    const { subscriptions } = (await app.app(user.path)).body
    expect(subscriptions).toMatchObject([{ session_count: 0 }, { session_count: 0 }])
  })

  test('one of a subscription refreshes that one alone', async () => {
    const user = await aUser(app, { properties: { last_active: ago(200) }, subscriptions: [push(), push()] })
    const [selected = ''] = user.subscriptionIds
    await update(user, { deltas: { session_count: 1 } }, { 'onesignal-subscription-id': selected })
    expect((await activity(user)).map(({ last }) => last).sort()).toEqual([0, 200])
  })

  test('last_active is that of the subscription, or of all', async () => {
    const user = await aUser(app, { subscriptions: [push(), push()] })
    const [selected = ''] = user.subscriptionIds
    const at = (hours: number) => ({ properties: { last_active: ago(hours) } })
    expect((await update(user, at(300), { 'onesignal-subscription-id': selected })).status).toBe(202)
    expect((await activity(user)).map(({ last }) => last).sort()).toEqual([0, 300])
    expect((await update(user, at(200))).status).toBe(202)
    expect((await activity(user)).map(({ last }) => last)).toEqual([200, 200])
  })
})

describe('add a player', () => {
  const add = async (fields: object) => {
    const body = { app_id: app.tenant.id, device_type: 1, identifier: aName('token'), ...fields }
    const answer = await app.request('/players', { body })
    expect(answer.status).toBe(200)
    const [player] = await app.db.query<{ id: string }>(sql`
      select user_id as id from subscriptions where app_id = ${app.tenant.id} and id = ${answer.body.id}`)
    const { body: view } = await app.request(`/players/${answer.body.id}?app_id=${app.tenant.id}`)
    return { user: player as { id: string }, view }
  }

  test('created_at and last_active are kept, shown and gone by', async () => {
    const { user, view } = await add({ created_at: ago(500), last_active: ago(200) })
    expect(view).toMatchObject({ created_at: ago(500), last_active: ago(200) })
    expect(await matches(user, 'last_session', '>', 168)).toEqual([true])
    expect(await matches(user, 'first_session', '>', 499)).toEqual([true])
    const { body } = await app.app(`/users/by/onesignal_id/${user.id}`)
    expect(body.properties).toMatchObject({ first_active: ago(500), last_active: ago(200) })
  })

  test('of a user who is there the first and the last time remain', async () => {
    const external_user_id = aName('external')
    await add({ external_user_id, created_at: ago(300), last_active: ago(100) })
    const { user, view } = await add({ external_user_id, created_at: ago(500), last_active: ago(200) })
    expect(view).toMatchObject({ created_at: ago(500), last_active: ago(200) })
    const { body } = await app.app(`/users/by/onesignal_id/${user.id}`)
    expect(body.properties).toMatchObject({ first_active: ago(500), last_active: ago(100) })
  })

  test('one that is known keeps when it was made', async () => {
    const identifier = aName('token')
    await add({ identifier, created_at: ago(500) })
    const { view } = await add({ identifier, created_at: ago(50), last_active: ago(20) })
    expect(view).toMatchObject({ created_at: ago(500), last_active: ago(20) })
  })

  test.each([{ created_at: 'yesterday' }, { last_active: -1 }, { created_at: 1.5 }])(
    '%j is refused',
    async (fields) => {
      const body = { app_id: app.tenant.id, device_type: 1, identifier: aName('token'), ...fields }
      expect((await app.request('/players', { body })).status).toBe(400)
    },
  )
})
