// Request limits over HTTP, on a clock that stands still until a test steps it: what is counted is counted in one instant.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import type { Profile } from '../../src/limits/rules.ts'
import { type Answer, type TestApp, testApp } from '../app.ts'
import { aName, anEmail, aUser, told, view } from '../users.ts'
import { operations, requestOf } from './operations.ts'

let app: TestApp
let clock: VirtualClock

/** A server with these limits for the tests of one group; before each of them every counter is empty. */
function serverWith(limits: Profile) {
  beforeAll(async () => {
    clock = virtualClock('2030-01-01T09:00:00Z')
    app = await testApp({ limits, clock, defaultPlan: 'free' })
  })
  afterAll(() => app.close())
  beforeEach(() => clock.advanceLease({ minutes: 5 }))
}

/** Makers write too; what they use up is left behind. */
async function aQuietUser(body: Parameters<typeof aUser>[1] = {}) {
  const user = await aUser(app, body)
  clock.advanceLease({ minutes: 2 })
  return user
}

const LIMITED_OBJECT = { errors: [{ code: 'Rate Limit Exceeded', title: 'API rate limit exceeded', meta: {} }] }
const LIMITED_STRINGS = { success: false, errors: ['API rate limit exceeded'] }
const statuses = (answers: Answer[]) => answers.map(({ status }) => status)
const times = async <Result>(count: number, run: (n: number) => Promise<Result>): Promise<Result[]> => {
  const results: Result[] = []
  for (let n = 0; n < count; n++) results.push(await run(n))
  return results
}
function expectLimited(answer: Answer, body: object = LIMITED_OBJECT): number {
  expect(told(answer)).toEqual({ status: 429, body })
  const header = answer.headers.get('retry-after') ?? ''
  expect(header).toMatch(/^\d+$/)
  return Number(header)
}
const tag = (path: string, tags: object) => app.app(path, { method: 'PATCH', body: { properties: { tags } } })

describe('LIMITS=spec', () => {
  serverWith('spec')

  test('a view endpoint answers one request per second and app, and again a second later', async () => {
    const user = await aQuietUser()
    expect((await app.app(user.path)).status).toBe(200)
    expect(expectLimited(await app.app(user.path))).toBe(1)
    clock.advanceLease({ ms: 999 })
    expectLimited(await app.app(user.path))
    clock.advanceLease({ ms: 1 })
    expect((await app.app(user.path)).status).toBe(200)
  })

  test('views are limited per app, whatever user is looked at', async () => {
    const [left, right] = [await aQuietUser(), await aQuietUser()]
    expect(statuses([await app.app(left.path), await app.app(right.path)])).toEqual([200, 429])
  })

  test('limits are per endpoint: each view has its own second', async () => {
    const user = await aQuietUser({ subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [id] = user.subscriptionIds
    const paths = [
      `/apps/${app.tenant.id}${user.path}`,
      `/apps/${app.tenant.id}${user.path}/identity`,
      `/apps/${app.tenant.id}/subscriptions/${id}/user/identity`,
      `/players/${id}?app_id=${app.tenant.id}`,
      `/players?app_id=${app.tenant.id}`,
    ]
    for (const path of paths) expect((await app.request(path)).status).toBe(200)
    for (const path of paths) expect((await app.request(path)).status).toBe(429)
  })

  test('limits are per app: another app has its own', async () => {
    const tenant = await app.anotherTenant()
    const user = await aQuietUser()
    const theirs = () =>
      app.request(`/apps/${tenant.id}/users/by/external_id/x`, { headers: { authorization: `Key ${tenant.key}` } })
    expect(statuses([await app.app(user.path), await app.app(user.path), await theirs(), await theirs()])).toEqual([
      200, 429, 404, 429,
    ])
  })

  test('both prefixes are one endpoint', async () => {
    const user = await aQuietUser()
    expect((await app.request(`/api/v1/apps/${app.tenant.id}${user.path}`)).status).toBe(200)
    expectLimited(await app.app(user.path))
  })

  test('ten look-back requests per second, counted apart from the first page', async () => {
    const page = (offset: number) => app.request(`/players?app_id=${app.tenant.id}&limit=1&offset=${offset}`)
    expect((await page(0)).status).toBe(200)
    expect(statuses(await times(10, (n) => page(n + 1)))).toEqual(Array(10).fill(200))
    expect(expectLimited(await page(11), LIMITED_STRINGS)).toBe(1)
    expectLimited(await page(0), LIMITED_STRINGS)
    clock.advanceLease({ seconds: 1 })
    expect(statuses(await times(11, (n) => page(n + 1)))).toEqual([...Array(10).fill(200), 429])
  })

  test('look-back requests have one counter, whatever is looked through', async () => {
    const segments = () => app.app('/segments?offset=1')
    const templates = () => app.request(`/templates?app_id=${app.tenant.id}&offset=1`)
    expect(statuses(await times(5, segments))).toEqual(Array(5).fill(200))
    expect(statuses(await times(5, templates))).toEqual(Array(5).fill(200))
    expectLimited(await templates())
    expectLimited(await segments())
  })

  test('1,000 writes per second, endpoint and app; the 1,001st is refused and has no effect', async () => {
    const create = (n: number) => app.app('/users', { body: { identity: { external_id: `bulk-${n}` } } })
    for (let n = 0; n < 1000; n += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => create(n + i)))
      expect(statuses(answers)).toEqual(Array(50).fill(201))
    }
    expect(expectLimited(await create(1000))).toBe(1)
    // Another endpoint is not concerned.
    expect((await tag('/users/by/external_id/bulk-0', { a: '1' })).status).toBe(202)
    clock.advanceLease({ seconds: 1 })
    expect((await app.app('/users/by/external_id/bulk-1000')).status).toBe(404)
    expect((await create(1000)).status).toBe(201)
  })

  test('custom events have a limit of their own, on both paths together, for the plan of the app', async () => {
    const user = await aQuietUser()
    const event = (path: string) => app.app(path, { body: { events: [{ name: 'x', external_id: user.externalId }] } })
    const paths = ['/custom_events', '/integrations/custom_events']
    for (const path of paths) {
      const answers = await Promise.all(Array.from({ length: 75 }, () => event(path)))
      expect(statuses(answers)).toEqual(Array(75).fill(202))
    }
    for (const path of paths) expect(expectLimited(await event(path))).toBe(1)
    // Users are not concerned.
    expect((await tag(user.path, { a: '1' })).status).toBe(202)
    clock.advanceLease({ seconds: 1 })
    expect((await event('/custom_events')).status).toBe(202)
    const seen = await app.app(`${user.path}/custom_events?limit=300`)
    expect(seen.body.events).toHaveLength(151)
  })

  test('create and cancel message share one counter, for the plan of the app', async () => {
    const LIMITED = { errors: ['API rate limit exceeded'] }
    const create = () =>
      app.request('/notifications', {
        body: { app_id: app.tenant.id, contents: { en: 'Hello' }, included_segments: ['Subscribed Users'] },
      })
    const cancel = (id: string) => app.request(`/notifications/${id}?app_id=${app.tenant.id}`, { method: 'DELETE' })
    const created = await Promise.all(Array.from({ length: 75 }, create))
    expect(statuses(created)).toEqual(Array(75).fill(200))
    const canceled = await Promise.all(created.map(({ body }) => cancel(body.id)))
    expect(statuses(canceled)).toEqual(Array(75).fill(200))
    expect(expectLimited(await create(), LIMITED)).toBe(1)
    expect(expectLimited(await cancel(created[0]?.body.id), LIMITED)).toBe(1)
    // Neither custom events nor estimates nor views are concerned.
    const user = await aUser(app)
    const events = [{ name: 'x', external_id: user.externalId }]
    expect((await app.app('/custom_events', { body: { events } })).status).toBe(202)
    expect((await app.request(`/notifications?app_id=${app.tenant.id}`)).status).toBe(200)
    clock.advanceLease({ seconds: 1 })
    expect((await create()).status).toBe(200)
  })

  test('views of messages: one per second and endpoint, and ten that look back', async () => {
    const LIMITED = { errors: ['API rate limit exceeded'] }
    const { body } = await app.request('/notifications', {
      body: { app_id: app.tenant.id, contents: { en: 'Hello' }, included_segments: ['Subscribed Users'] },
    })
    const list = (query = '') => app.request(`/notifications?app_id=${app.tenant.id}${query}`)
    const one = () => app.request(`/notifications/${body.id}?app_id=${app.tenant.id}`)
    expect(statuses([await list(), await one()])).toEqual([200, 200])
    expectLimited(await list(), LIMITED)
    expectLimited(await one(), LIMITED)
    const lookback = (n: number) => list(n % 2 ? '&offset=1' : '&time_offset=2020-01-01')
    expect(statuses(await times(10, lookback))).toEqual(Array(10).fill(200))
    expectLimited(await lookback(0), LIMITED)
    expectLimited(await lookback(1), LIMITED)
  })

  test('metrics of email: 100 requests per second and endpoint, refused in a list of strings', async () => {
    const time = { start: '2029-12-01T00:00:00Z', end: '2030-01-01T00:00:00Z' }
    const metrics = () =>
      app.app(`/email_analytics/provider_metrics?${new URLSearchParams({ domain: 'x.com', ...time })}`)
    const reputation = () => app.app('/email_analytics/delivery_metrics')
    for (const ask of [metrics, reputation]) {
      expect(statuses(await times(100, ask))).toEqual(Array(100).fill(200))
      expect(expectLimited(await ask(), { errors: ['API rate limit exceeded'] })).toBe(1)
    }
    clock.advanceLease({ seconds: 1 })
    expect((await metrics()).status).toBe(200)
  })

  test('older pages of custom events are look-back requests', async () => {
    const user = await aQuietUser()
    const events = Array.from({ length: 2 }, () => ({ name: 'x', external_id: user.externalId }))
    await app.app('/custom_events', { body: { events } })
    const page = (query: string) => app.app(`${user.path}/custom_events?limit=1${query}`)
    const { status, body } = await page('')
    expect(status).toBe(200)
    expectLimited(await page(''))
    const older = () => page(`&cursor=${body.next_cursor}`)
    expect(statuses(await times(10, older))).toEqual(Array(10).fill(200))
    expectLimited(await older())
  })

  test('one write per second and user; Retry-After suffices', async () => {
    const user = await aQuietUser()
    expect((await tag(user.path, { a: '1' })).status).toBe(202)
    clock.advanceLease({ ms: 300 })
    const seconds = expectLimited(await tag(user.path, { a: '2', b: '2' }))
    expect(seconds).toBe(1)
    clock.advanceLease({ seconds })
    expect((await tag(user.path, { c: '3' })).status).toBe(202)
    expect((await view(app, user)).properties.tags).toEqual({ a: '1', c: '3' })
  })

  test('another user is not concerned', async () => {
    const [left, right] = [await aQuietUser(), await aQuietUser()]
    expect((await tag(left.path, { a: '1' })).status).toBe(202)
    expect((await tag(right.path, { a: '1' })).status).toBe(202)
  })

  test('two aliases of one user share its limit', async () => {
    const crm = aName()
    const user = await aQuietUser({ identity: { crm } })
    const paths = [
      user.path,
      `/users/by/onesignal_id/${user.id.toUpperCase()}`,
      `/users/by/external_id/${user.externalId}`,
      `/users/by/crm/${crm}`,
    ]
    for (const first of paths) {
      clock.advanceLease({ minutes: 1 })
      expect((await tag(first, { a: first })).status).toBe(202)
      for (const other of paths) expectLimited(await tag(other, { b: '1' }))
    }
    clock.advanceLease({ seconds: 1 })
    expect((await view(app, user)).properties.tags).toEqual({ a: paths.at(-1) })
  })

  test('each write endpoint of a user has its own second', async () => {
    const user = await aQuietUser()
    const requests = [
      () => tag(user.path, { a: '1' }),
      () => app.app(`${user.path}/identity`, { method: 'PATCH', body: { identity: { crm: aName() } } }),
      () => app.app(`${user.path}/identity/crm`, { method: 'DELETE' }),
      () => app.app(`${user.path}/subscriptions`, { body: { subscription: { type: 'Email', token: anEmail() } } }),
      () => app.app('/users', { body: { identity: { external_id: user.externalId } } }),
      () => app.app(`/users/${user.externalId}`, { method: 'PUT', body: { tags: { b: '1' } } }),
    ]
    for (const request of requests) expect((await request()).status).toBeLessThan(300)
    for (const request of requests) expect((await request()).status).toBe(429)
    expect((await app.app(user.path, { method: 'DELETE' })).status).toBe(202)
    expect((await app.app(user.path, { method: 'DELETE' })).status).toBe(429)
  })

  test('Create user counts for the user that its aliases name, also before there is one', async () => {
    const [external_id, crm] = [aName(), aName()]
    const create = (identity: object) => app.app('/users', { body: { identity } })
    expect((await create({ external_id, crm })).status).toBe(201)
    expectLimited(await create({ external_id }))
    expectLimited(await create({ crm }))
    expect((await create({ external_id: aName() })).status).toBe(201)
    clock.advanceLease({ seconds: 1 })
    expect((await create({ crm })).status).toBe(202)
    expectLimited(await create({ external_id }))
  })

  test('one write per second and subscription', async () => {
    const token = anEmail()
    const user = await aQuietUser({ subscriptions: [{ type: 'Email', token }] })
    const [id] = user.subscriptionIds
    const change = { subscription: { sdk: '2' } }
    const requests = [
      () => app.app(`/subscriptions/${id}`, { method: 'PATCH', body: change }),
      () => app.app(`/subscriptions/${id}/owner`, { method: 'PATCH', body: { identity: { onesignal_id: user.id } } }),
      () => app.app(`/subscriptions/${id}/user/identity`, { method: 'PATCH', body: { identity: { crm: aName() } } }),
      () => app.app(`/subscriptions_by_token/Email/${token}`, { method: 'PATCH', body: change }),
      () => app.app(`/subscriptions/${id}`, { method: 'DELETE' }),
    ]
    for (const request of requests) expect((await request()).status).toBeLessThan(300)
    for (const request of requests) expectLimited(await request())
  })

  test('a subscription is the same however its id and address are spelled', async () => {
    const token = anEmail()
    const user = await aQuietUser({ subscriptions: [{ type: 'Email', token }] })
    const [id] = user.subscriptionIds as [string]
    const change = { method: 'PATCH', body: { subscription: { sdk: '2' } } }
    expect((await app.app(`/subscriptions/${id}`, change)).status).toBe(200)
    expectLimited(await app.app(`/subscriptions/${id.toUpperCase()}`, change))
    expect((await app.app(`/subscriptions_by_token/Email/${token}`, change)).status).toBe(202)
    expectLimited(await app.app(`/subscriptions_by_token/email/${token.toUpperCase()}`, change))
  })

  test('Create user counts for the subscriptions it brings', async () => {
    const tokens = [anEmail(), anEmail()]
    const create = (identity: object | undefined, ...order: (string | undefined)[]) =>
      app.app('/users', {
        body: { ...(identity && { identity }), subscriptions: order.map((token) => ({ type: 'Email', token })) },
      })
    expect((await create(undefined, tokens[0], tokens[1])).status).toBe(201)
    expectLimited(await create(undefined, tokens[1], tokens[0]))
    expectLimited(await create({ external_id: aName() }, tokens[1]?.toUpperCase()))
    clock.advanceLease({ seconds: 1 })
    expect((await create({ external_id: aName() }, tokens[1])).status).toBe(201)
  })

  test('the old interface refuses in a list of strings', async () => {
    const body = { app_id: app.tenant.id, device_type: 1, identifier: aName() }
    const added = await app.request('/players', { body })
    expect(added.status).toBe(200)
    expect(expectLimited(await app.request('/players', { body }), LIMITED_STRINGS)).toBe(1)
    const { id } = added.body
    const edit = { method: 'PUT', body: { app_id: app.tenant.id, game_version: '2' } }
    expect((await app.request(`/players/${id}`, edit)).status).toBe(200)
    expectLimited(await app.request(`/players/${id.toUpperCase()}`, edit), LIMITED_STRINGS)
  })

  test('requests that are not let in by their key use nothing up', async () => {
    const user = await aQuietUser()
    const other = await app.anotherTenant()
    for (const authorization of ['', `Key ${'x'.repeat(40)}`, `Key ${other.key}`])
      await times(3, () => app.app(user.path, { headers: { authorization } }))
    expect((await app.app(user.path)).status).toBe(200)
  })

  test('a refused request uses nothing up: the next second is free', async () => {
    const user = await aQuietUser()
    await tag(user.path, { a: '1' })
    clock.advanceLease({ ms: 500 })
    await times(5, async () => expectLimited(await tag(user.path, { a: '2' })))
    clock.advanceLease({ ms: 500 })
    expect((await tag(user.path, { a: '3' })).status).toBe(202)
  })

  test('a limit is judged when a request is received, before its body is checked', async () => {
    const user = await aQuietUser()
    expect((await tag(user.path, { a: {} })).status).toBe(400)
    expectLimited(await tag(user.path, { a: {} }))
    for (const identity of [null, 5, [], { external_id: 5 }, { '': '' }])
      expect((await app.app('/users', { body: { identity, subscriptions: [null, 5, {}] } })).status).toBe(400)
    expect((await app.app('/users/by/onesignal_id/x', { method: 'DELETE' })).status).toBe(400)
  })

  test('views of SDKs without a key do not use up those of the app', async () => {
    const user = await aQuietUser()
    const headers = {
      authorization: '',
      accept: 'application/vnd.onesignal.v1+json',
      'sdk-version': 'onesignal/ios/050200',
    }
    for (let n = 0; n < 3; n++) expect((await app.app(user.path, { headers })).status).toBe(200)
    expect((await app.app(user.path)).status).toBe(200)
    expectLimited(await app.app(user.path))
  })

  test.each(operations)('$name: 429 in the shape of its family, with Retry-After', async (operation) => {
    const path = operation.path(app.tenant.id)
    const request = requestOf(operation, app.tenant.id, { authorization: `Key ${app.tenant.key}` })
    // What these two write to is not named by an id: there must be a device, and a user, to count for.
    if (operation.name === 'Add a player') request.body = { ...(request.body as object), identifier: aName('device') }
    if (operation.name === 'Change tags by external user id') await aQuietUser({ identity: { external_id: 'nobody' } })
    // Of events 150 a second are let in, of everything else here one.
    if (operation.name.startsWith('Create custom events')) await times(149, () => app.request(path, request))
    expect((await app.request(path, request)).status).not.toBe(429)
    const refused = await app.request(path, request)
    expect(expectLimited(refused, operation.family === 'legacy' ? LIMITED_STRINGS : LIMITED_OBJECT)).toBe(1)
  })
})

describe('LIMITS=default', () => {
  serverWith('default')

  test('views are averaged over a minute: 60 at once, the next when the first leaves the window', async () => {
    const user = await aQuietUser()
    expect(statuses(await times(30, () => app.app(user.path)))).toEqual(Array(30).fill(200))
    clock.advanceLease({ seconds: 20 })
    expect(statuses(await times(30, () => app.app(user.path)))).toEqual(Array(30).fill(200))
    expect(expectLimited(await app.app(user.path))).toBe(40)
    clock.advanceLease({ seconds: 39 })
    expect(expectLimited(await app.app(user.path))).toBe(1)
    clock.advanceLease({ seconds: 1 })
    expect(statuses(await times(31, () => app.app(user.path)))).toEqual([...Array(30).fill(200), 429])
  })

  test('writes of one user too', async () => {
    const user = await aQuietUser()
    const answers = await times(60, (n) => tag(user.path, { [`t${n}`]: '1' }))
    expect(statuses(answers)).toEqual(Array(60).fill(202))
    expect(expectLimited(await tag(user.path, { late: '1' }))).toBe(60)
    clock.advanceLease({ seconds: 60 })
    expect((await tag(user.path, { after: '1' })).status).toBe(202)
    expect(Object.keys((await view(app, user)).properties.tags)).toHaveLength(61)
  })

  test('one request every second is never refused', async () => {
    const user = await aQuietUser()
    const answers = await times(150, () => {
      clock.advanceLease({ seconds: 1 })
      return app.app(user.path)
    })
    expect(new Set(statuses(answers))).toEqual(new Set([200]))
  })

  test('look-back requests are counted by the second', async () => {
    const page = (offset: number) => app.request(`/players?app_id=${app.tenant.id}&limit=1&offset=${offset}`)
    expect(statuses(await times(11, (n) => page(n + 1)))).toEqual([...Array(10).fill(200), 429])
  })
})

describe('LIMITS=off', () => {
  serverWith('off')

  test('nothing is refused', async () => {
    const user = await aQuietUser()
    expect(new Set(statuses(await times(100, () => app.app(user.path))))).toEqual(new Set([200]))
  })
})
