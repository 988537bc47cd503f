import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aMessage, anEngine, closeRenderer, fakeSender, only, runEngine, tally } from '../../../test/engine.ts'
import { aName, aUser, NOBODY } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import type { Engine } from '../engine/types.ts'
import { findTokens } from './store.ts'

let app: TestApp
let engine: Engine
const clock = virtualClock('2030-01-01T09:00:00Z')
let sender = fakeSender()
beforeAll(async () => {
  app = await testApp({ clock })
})
beforeEach(() => {
  sender = fakeSender()
  engine = anEngine({ db: app.db, clock, sender })
})
afterAll(async () => {
  await closeRenderer()
  await app.close()
})

const SDK = { authorization: '', accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/ios/050220' }
const anIPhone = () => aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName('own') }] })
const enter = (activity: string, id: string | undefined, push_token: string) =>
  app.app(`/live_activities/${activity}/token`, { body: { subscription_id: id, push_token } })
const allow = (type: string, id: string | undefined, activity_token: string) =>
  app.app(`/activities/tokens/start/${type}/subscriptions/${id}`, { method: 'PUT', body: { activity_token } })
const starting = (fields: object) => ({
  name: 'An order',
  event: 'start',
  activity_id: aName('activity'),
  event_attributes: { order: 7 },
  event_updates: { status: 'baking' },
  contents: { en: 'On its way', de: 'Unterwegs' },
  headings: { en: 'Order 7' },
  ...fields,
})

describe('live activities are delivered', () => {
  test('a start goes to the tokens of its type, and is skipped where there is none', async () => {
    const type = aName('Order')
    const [one, two] = [await anIPhone(), await anIPhone()]
    await allow(type, one.subscriptionIds[0], 'start token')
    const body = starting({ include_subscription_ids: [...one.subscriptionIds, ...two.subscriptionIds] })
    const { body: answer } = await app.app(`/activities/activity/${type}`, { body })
    await runEngine(engine)
    expect(sender.calls).toMatchObject([
      {
        provider: 'apns',
        outgoing: {
          kind: 'activity',
          token: 'start token',
          content: {
            messageId: answer.notification_id,
            activity: {
              event: 'start',
              type,
              id: body.activity_id,
              attributes: { order: 7 },
              state: { status: 'baking' },
            },
            alert: { title: 'Order 7', body: 'On its way', sound: 'default' },
          },
        },
      },
    ])
    expect(await tally(app.db, app.tenant.id, answer.notification_id)).toEqual({
      sent: 1,
      'skipped no_activity_token': 1,
    })
    const explained = await app.app(`/messages/${answer.notification_id}/explain?onesignal_id=${two.id}`)
    expect(explained.body.subscriptions[0].explanation).toBe(
      'It was decided not to send it: the device has no token for this live activity.',
    )
  })

  test('a click is counted once for the message that it names, and is told without a key', async () => {
    const type = aName('Order')
    const { subscriptionIds } = await anIPhone()
    const [id] = subscriptionIds as [string]
    await allow(type, id, aName('start'))
    const body = starting({ include_subscription_ids: [id] })
    const { notification_id } = (await app.app(`/activities/activity/${type}`, { body })).body
    await runEngine(engine)
    const click = (method: string, fields: object, subscriptionId = id) => {
      clock.advanceLease({ seconds: 1 })
      const path = `/activities/clicks/track/${type}/subscriptions/${subscriptionId}`
      return app.app(path, { method, headers: SDK, body: { activity_id: body.activity_id, ...fields } })
    }
    const converted = async () =>
      (await app.request(`/notifications/${notification_id}?app_id=${app.tenant.id}`)).body.converted
    const noted = { status: 200, body: {} }
    expect(await click('PUT', {})).toMatchObject(noted)
    expect(await click('PUT', { notification_id: null })).toMatchObject(noted)
    expect(await click('PUT', { notification_id: NOBODY })).toMatchObject(noted)
    expect(await click('PUT', { notification_id }, NOBODY)).toMatchObject({ status: 404 })
    expect(await converted()).toBe(0)
    expect(await click('PUT', { notification_id: notification_id.toUpperCase() }, id.toUpperCase())).toMatchObject(
      noted,
    )
    expect(await click('POST', { notification_id })).toMatchObject(noted)
    expect(await converted()).toBe(1)
    expect((await click('PUT', { notification_id: 'x' })).status).toBe(400)
    expect((await click('PUT', { activity_id: null })).status).toBe(400)
  })

  test('an update goes to those that show it; a token that is gone is dropped, and the subscription stays', async () => {
    const activity = aName('activity')
    const [one, two] = [await anIPhone(), await anIPhone()]
    await enter(activity, one.subscriptionIds[0], `${activity} one`)
    await enter(activity, two.subscriptionIds[0], `${activity} two`)
    sender.script(`${activity} two`, { kind: 'gone', reason: 'Unregistered' })
    const change = { name: 'Baked', event: 'update', event_updates: { status: 'baked' } }
    const { body } = await app.app(`/live_activities/${activity}/notifications`, { body: change })
    await runEngine(engine)
    expect(sender.calls.map(({ outgoing }) => outgoing.token).sort()).toEqual([`${activity} one`, `${activity} two`])
    expect(sender.calls[0]?.outgoing).toMatchObject({ kind: 'activity', content: { alert: undefined } })
    expect(await tally(app.db, app.tenant.id, body.id)).toMatchObject({ sent: 1 })
    const ids = [...one.subscriptionIds, ...two.subscriptionIds]
    const left = await findTokens(app.db, app.tenant.id, { purpose: 'update', name: activity }, ids)
    expect([...left.keys()]).toEqual(one.subscriptionIds)
    const user = await app.app(two.path)
    expect(user.body.subscriptions).toMatchObject([{ enabled: true, notification_types: 1 }])
  })

  test('where too many show it to be named, they are found by their tokens', async () => {
    const activity = aName('match')
    const phones = await Promise.all(Array.from({ length: 12 }, anIPhone))
    for (const { subscriptionIds } of phones.slice(0, 10))
      await enter(activity, subscriptionIds[0], subscriptionIds[0] as string)
    const id = await aMessage(engine, app.tenant.id, {
      audience: { kind: 'activity', activityId: activity },
      options: {
        platforms: ['iOSPush'],
        activity: { event: 'end', id: activity, state: {}, at: clock.now().toISOString() },
      },
    })
    await runEngine(engine)
    expect(await tally(app.db, app.tenant.id, id)).toEqual({ sent: 10 })
    expect(sender.calls.map(({ outgoing }) => outgoing.token).sort()).toEqual(
      phones
        .slice(0, 10)
        .flatMap(({ subscriptionIds }) => subscriptionIds)
        .sort(),
    )
  })

  test('a notification to the same device goes to its own token', async () => {
    const { subscriptionIds } = await anIPhone()
    const [id] = subscriptionIds as [string]
    await allow('Order', id, 'start token')
    await aMessage(engine, app.tenant.id, { lane: 'direct', audience: only(id) })
    await runEngine(engine)
    expect(sender.calls).toMatchObject([{ outgoing: { kind: 'push', token: expect.stringMatching(/^own/) } }])
  })
})
