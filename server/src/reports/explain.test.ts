import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aSegment, tagIs } from '../../test/segments.ts'
import { aStoredMessage, deliver, putUnderWay } from '../../test/stored-messages.ts'
import { aName, anEmail, aUser, NOBODY } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Audience } from '../messages/message.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const explain = (id: string, query: string) => app.app(`/messages/${id}/explain?${query}`)
const push = () => ({ type: 'AndroidPush', token: aName('token') })
const mail = () => ({ type: 'Email', token: anEmail() })
const toSegment = (id: string, name = 'Some'): Audience => ({
  kind: 'segments',
  included: [{ id, name }],
  excluded: [],
})
const EVERYBODY: Audience = { kind: 'filters', filters: [{ field: 'device_type', relation: 'exists' }], excluded: [] }

describe('explain a message to a user', () => {
  test('who got it: the state, the times and the words of the provider', async () => {
    const user = await aUser(app, { subscriptions: [push(), push()] })
    const [one, two] = user.subscriptionIds as [string, string]
    const message = await aStoredMessage(app, { at: clock.now(), audience: EVERYBODY })
    const clickedAt = new Date(clock.now().getTime() + 60_000)
    await deliver(app, message, [
      {
        subscriptionId: one,
        userId: user.id,
        receivedAt: clock.now(),
        clickedAt,
        providerRef: 'projects/x/messages/1',
      },
      { subscriptionId: two, userId: user.id, state: 'failed', reason: 'UNREGISTERED', attempts: 3 },
      { subscriptionId: newId(), state: 'sent' },
    ])
    const { status, body } = await explain(message.id, `external_id=${user.externalId}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      message_id: message.id,
      onesignal_id: user.id,
      message_state: 'sending',
      explanation: 'It was sent to 1 subscription of this user.',
      holds: [],
    })
    const at = clock.now().toISOString()
    const byId = (id: string) => body.subscriptions.find((it: { id: string }) => it.id === id)
    expect([byId(one), byId(two)]).toEqual([
      {
        id: one,
        type: 'AndroidPush',
        is_subscribed: true,
        matches_now: true,
        absence: null,
        explanation: 'The provider took it, and the device told that it arrived.',
        delivery: {
          subscription_id: one,
          onesignal_id: user.id,
          type: 'AndroidPush',
          state: 'sent',
          reason: null,
          attempts: 1,
          due_at: at,
          expires_at: '2030-01-02T09:00:00.000Z',
          settled_at: '2030-01-01T09:00:01.000Z',
          received_at: at,
          clicked_at: '2030-01-01T09:01:00.000Z',
          ...{ delivered_at: null, opened_at: null, bounced_at: null, complained_at: null, unsubscribed_at: null },
          inbox_provider: null,
          provider_reference: 'projects/x/messages/1',
        },
      },
      expect.objectContaining({
        id: two,
        explanation: 'The provider refused it: UNREGISTERED.',
        delivery: expect.objectContaining({ state: 'failed', attempts: 3 }),
      }),
    ])
  })

  test('who is being sent it at this moment is told apart from who waits', async () => {
    const user = await aUser(app, { subscriptions: [push(), push()] })
    const [one, two] = user.subscriptionIds as [string, string]
    const message = await aStoredMessage(app, { at: clock.now(), audience: EVERYBODY })
    const waiting = [one, two].map((subscriptionId) => ({ subscriptionId, userId: user.id, state: 'pending' as const }))
    await deliver(app, message, waiting)
    await putUnderWay(app, message, [two])
    const { body } = await explain(message.id, `onesignal_id=${user.id}`)
    expect(body.explanation).toBe('It waits to be sent to 2 subscriptions of this user.')
    const told = new Map(body.subscriptions.map((it: { id: string }) => [it.id, it]))
    expect(told.get(one)).toMatchObject({ explanation: 'It waits to be sent.', delivery: { state: 'pending' } })
    expect(told.get(two)).toMatchObject({
      explanation: 'It is being sent at this moment.',
      delivery: { state: 'sending' },
    })
    const listed = await app.app(`/messages/${message.id}/deliveries?state=sending`)
    expect(listed.body.deliveries).toMatchObject([{ subscription_id: two, state: 'sending', settled_at: null }])
  })

  test('by onesignal_id, by subscription_id alone, and by exactly one of the three', async () => {
    const user = await aUser(app, { subscriptions: [push(), push()] })
    const message = await aStoredMessage(app, { at: clock.now(), audience: EVERYBODY })
    const [one] = user.subscriptionIds
    const byUser = await explain(message.id, `onesignal_id=${user.id.toUpperCase()}`)
    expect(byUser.body.subscriptions).toHaveLength(2)
    const bySubscription = await explain(message.id, `subscription_id=${one}`)
    expect(bySubscription.body.subscriptions).toMatchObject([{ id: one }])
    const only = {
      status: 400,
      body: { errors: ['Name the user by one of external_id, onesignal_id and subscription_id'] },
    }
    expect(await explain(message.id, '')).toMatchObject(only)
    expect(await explain(message.id, `external_id=a&onesignal_id=${user.id}`)).toMatchObject(only)
    expect(await explain(message.id, 'subscription_id=x')).toMatchObject({
      status: 400,
      body: { errors: ['subscription_id must be a UUID'] },
    })
    expect(await explain(message.id, `onesignal_id=${NOBODY}`)).toMatchObject({
      status: 404,
      body: { errors: ['User not found'] },
    })
    expect(await explain(message.id, `subscription_id=${NOBODY}`)).toMatchObject({
      status: 404,
      body: { errors: ['Subscription not found'] },
    })
    for (const id of [NOBODY, 'x'])
      expect(await explain(id, `onesignal_id=${user.id}`)).toMatchObject({
        status: 404,
        body: { errors: ['Notification not found'] },
      })
  })

  test('who was not in the audience: whether they would be now', async () => {
    const colour = aName('colour')
    const segment = await aSegment(app, [tagIs('colour', colour)])
    const user = await aUser(app, { subscriptions: [push()] })
    clock.advance({ minutes: 1 })
    const message = await aStoredMessage(app, { at: clock.now(), audience: toSegment(segment), state: 'done' })
    const before = await explain(message.id, `onesignal_id=${user.id}`)
    expect(before.body).toMatchObject({
      explanation: 'It was not sent to this user.',
      subscriptions: [
        {
          absence: 'not_in_audience',
          matches_now: false,
          delivery: null,
          explanation:
            'It was not in the audience when it was decided who gets the message. It would not be in the audience now.',
        },
      ],
    })
    await app.app(user.path, { method: 'PATCH', body: { properties: { tags: { colour } } } })
    const after = await explain(message.id, `onesignal_id=${user.id}`)
    expect(after.body.subscriptions).toMatchObject([
      {
        absence: 'not_in_audience',
        matches_now: true,
        explanation: expect.stringContaining('would be in the audience now'),
      },
    ])
    const excluding = await aStoredMessage(app, {
      at: clock.now(),
      audience: { ...EVERYBODY, excluded: [{ id: segment, name: 'Some' }] } as Audience,
    })
    expect((await explain(excluding.id, `onesignal_id=${user.id}`)).body.subscriptions).toMatchObject([
      { matches_now: false },
    ])
    await app.app(`/segments/${segment}`, { method: 'DELETE' })
    const gone = await explain(message.id, `onesignal_id=${user.id}`)
    expect(gone.body.explanation).toBe('It was not sent to this user. These segments of it were deleted since: Some.')
    expect(gone.body.subscriptions).toMatchObject([{ matches_now: false }])
  })

  test('who was named, and who was not', async () => {
    const [named, other] = [
      await aUser(app, { subscriptions: [push()] }),
      await aUser(app, { subscriptions: [push()] }),
    ]
    const byAlias: Audience = {
      kind: 'aliases',
      field: 'include_aliases',
      aliases: { external_id: [named.externalId] },
    }
    const byId: Audience = { kind: 'subscriptions', field: '', given: [], ids: named.subscriptionIds }
    for (const audience of [byAlias, byId]) {
      const message = await aStoredMessage(app, { at: clock.now(), audience, lane: 'direct' })
      const matches = async ({ id }: { id: string }) =>
        (await explain(message.id, `onesignal_id=${id}`)).body.subscriptions[0].matches_now
      expect(await matches(named)).toBe(true)
      expect(await matches(other)).toBe(false)
    }
  })

  test.each<[string, Parameters<typeof aStoredMessage>[1], string]>([
    ['another channel', { channel: 'email' }, 'other_channel'],
    ['a platform that was not chosen', { options: { platforms: ['iOSPush'] } }, 'platform_not_chosen'],
    ['a message canceled before', { state: 'canceled', expandAt: null }, 'canceled'],
    ['a message that is scheduled', { state: 'scheduled', expandAt: null }, 'not_expanded_yet'],
    ['a message that is just being expanded', { state: 'expanding' }, 'not_expanded_yet'],
    [
      'one that the expansion has passed',
      { state: 'expanding', expandedTo: 'ffffffff-ffff-4fff-bfff-ffffffffffff' },
      'not_in_audience',
    ],
    ['a subscription made later', { at: new Date('2029-01-01T00:00:00Z') }, 'created_later'],
  ])('%s', async (_, fields, absence) => {
    const user = await aUser(app, { subscriptions: [push()] })
    const message = await aStoredMessage(app, { at: clock.now(), audience: EVERYBODY, ...fields })
    const { body } = await explain(message.id, `onesignal_id=${user.id}`)
    expect(body.subscriptions).toMatchObject([{ absence, delivery: null }])
  })

  test('a message that waits while sending is paused', async () => {
    const user = await aUser(app, { subscriptions: [push()] })
    const message = await aStoredMessage(app, { at: clock.now(), audience: EVERYBODY })
    await deliver(app, message, [{ subscriptionId: user.subscriptionIds[0] as string, state: 'pending' }])
    await app.app('/sending/pause', { method: 'POST' })
    const { body } = await explain(message.id, `onesignal_id=${user.id}`)
    expect(body).toMatchObject({
      explanation: 'It waits to be sent to 1 subscription of this user.',
      holds: [`Nothing is sent since ${clock.now().toISOString()}: somebody paused the sending of this app.`],
    })
    await app.app('/sending/resume', { method: 'POST' })
    expect((await explain(message.id, `onesignal_id=${user.id}`)).body.holds).toEqual([])
  })

  test('a user without a subscription of the channel', async () => {
    const user = await aUser(app, { subscriptions: [mail()] })
    const message = await aStoredMessage(app, { audience: EVERYBODY })
    const { body } = await explain(message.id, `onesignal_id=${user.id}`)
    expect(body).toMatchObject({ explanation: 'This user has no subscription of the channel push.' })
  })
})

describe('the deliveries of a message', () => {
  test('come page by page, each once, in one order, and by state', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    const ids = Array.from({ length: 25 }, () => newId()).sort()
    await deliver(
      app,
      message,
      ids.map((subscriptionId, n) => ({ subscriptionId, state: n % 5 === 0 ? 'failed' : 'sent' })),
    )
    const read = async (query: string) => {
      const seen: string[] = []
      let pages = 0
      for (let cursor = ''; ; pages++) {
        const { body } = await app.app(`/messages/${message.id}/deliveries?${query}${cursor}`)
        seen.push(...body.deliveries.map((it: { subscription_id: string }) => it.subscription_id))
        if (body.next_cursor === null) return { seen, pages: pages + 1 }
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    expect(await read('limit=10')).toEqual({ seen: ids, pages: 3 })
    expect((await read('limit=1000')).seen).toEqual(ids)
    const failed = ids.filter((_, n) => n % 5 === 0)
    expect((await read('limit=2&state=failed')).seen).toEqual(failed)
    expect(await read('state=failed')).toEqual({ seen: failed, pages: 1 })
    expect((await read('state=unknown')).seen).toEqual([])
  })

  test('of a message that is not expanded there are none; wrong queries are told', async () => {
    const message = await aStoredMessage(app, { state: 'scheduled', expandAt: null })
    const at = (query: string) => app.app(`/messages/${message.id}/deliveries?${query}`)
    expect((await at('')).body).toEqual({ deliveries: [], next_cursor: null })
    for (const query of ['limit=0', 'limit=1001', 'state=lost', 'cursor=x']) expect((await at(query)).status).toBe(400)
    expect((await app.app(`/messages/${NOBODY}/deliveries`)).status).toBe(404)
  })
})
