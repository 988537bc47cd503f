import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import {
  aName,
  anEmail,
  aUser,
  type MadeUser,
  NOBODY,
  plainSubscription,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  USER_NOT_FOUND,
  view,
} from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())

const nowSeconds = () => clock.now().getTime() / 1000
const update = (user: { path: string }, body: unknown, subscriptionId?: string) =>
  app.app(user.path, {
    method: 'PATCH',
    body,
    ...(subscriptionId !== undefined && { headers: { 'OneSignal-Subscription-Id': subscriptionId } }),
  })
const propertiesOf = async (user: MadeUser) => (await view(app, user)).properties

describe('the answer', () => {
  test('is 202 with all stored properties, purchases included', async () => {
    const user = await aUser(app, { properties: { tags: { kept: '1' }, country: 'DE', amount_spent: 1 } })
    const properties = {
      tags: { added: '2' },
      language: 'en',
      timezone_id: 'America/New_York',
      lat: -33.5,
      long: 151,
      ip: '2001:db8::1',
      test_user_name: 'Tester',
      first_active: 1_600_000_000,
      last_active: 1_700_000_000,
    }
    const purchases = [{ sku: 'A1', iso: 'USD', amount: '$33.33', count: 2 }]
    const answer = await update(user, { properties, deltas: { session_time: 30, session_count: 1, purchases } })
    expect(told(answer)).toEqual({
      status: 202,
      body: {
        properties: {
          ...properties,
          tags: { kept: '1', added: '2' },
          country: 'DE',
          session_count: 1,
          session_time: 30,
          amount_spent: 67.66,
          purchases,
        },
      },
    })
    expect(await propertiesOf(user)).toEqual(answer.body.properties)
  })

  test('is the stored properties also when nothing is changed', async () => {
    const user = await aUser(app, { properties: { tags: { a: '1' }, language: 'en' } })
    const stored = await propertiesOf(user)
    for (const body of [{}, { properties: {} }, { deltas: {} }, { properties: {}, deltas: {} }])
      expect(told(await update(user, body))).toEqual({ status: 202, body: { properties: stored } })
  })

  test('needs a body that is an object', async () => {
    const user = await aUser(app)
    expect((await app.app(user.path, { method: 'PATCH' })).status).toBe(400)
    expect(told(await update(user, []))).toEqual(
      problem(400, 'request-0', 'The body must be an object', { field: expect.anything() }),
    )
  })
})

describe('the user', () => {
  test('is found by external_id, by onesignal_id in any case and by a custom label', async () => {
    const user = await aUser(app, { identity: { customer: aName('a/b c%') } })
    const customer = encodeURIComponent((await view(app, user)).identity.customer)
    const paths = [
      `/users/by/external_id/${user.externalId}`,
      `/users/by/onesignal_id/${user.id}`,
      `/users/by/onesignal_id/${user.id.toUpperCase()}`,
      `/users/by/customer/${customer}`,
    ]
    for (const [n, path] of paths.entries())
      expect((await update({ path }, { properties: { tags: { [`t${n}`]: 'x' } } })).status).toBe(202)
    expect(Object.keys((await propertiesOf(user)).tags)).toHaveLength(paths.length)
  })

  test('that does not exist is a 404 and is not made', async () => {
    const name = aName()
    const paths = [`/users/by/external_id/${name}`, `/users/by/nolabel/${name}`, `/users/by/onesignal_id/${NOBODY}`]
    for (const path of paths)
      expect(told(await update({ path }, { properties: { language: 'en' } }))).toEqual(USER_NOT_FOUND)
    expect((await app.app(`/users/by/external_id/${name}`)).status).toBe(404)
  })

  test('named by a malformed onesignal_id is a 400', async () => {
    expect(told(await update({ path: '/users/by/onesignal_id/123' }, {}))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: '123' }),
    )
  })

  test('changes in its properties alone: aliases and subscriptions in the body have no effect', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const before = await view(app, user)
    const answer = await update(user, {
      properties: { language: 'en' },
      identity: { external_id: aName(), more: 'x' },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    expect(answer.status).toBe(202)
    expect(await view(app, user)).toEqual({ ...before, properties: { ...before.properties, language: 'en' } })
  })
})

describe('tags', () => {
  test('are merged; "" and null remove one; others stay', async () => {
    const user = await aUser(app, { properties: { tags: { a: '1', b: '2', c: '3', d: '4' } } })
    const { body } = await update(user, { properties: { tags: { a: '', b: null, c: 'three', e: '5' } } })
    expect(body.properties.tags).toEqual({ c: 'three', d: '4', e: '5' })
    expect((await propertiesOf(user)).tags).toEqual({ c: 'three', d: '4', e: '5' })
  })

  test('that are numbers or truth values are kept as text', async () => {
    const user = await aUser(app)
    const { body } = await update(user, { properties: { tags: { n: 1.5, zero: 0, yes: true, no: false } } })
    expect(body.properties.tags).toEqual({ n: '1.5', zero: '0', yes: 'true', no: 'false' })
  })

  test('may be called anything', async () => {
    const user = await aUser(app)
    const tags = { constructor: 'a', 'with space': 'b', 'ключ 🔔': 'c', a$b: 'd', "it's": '"quoted"' }
    expect((await update(user, { properties: { tags } })).body.properties.tags).toEqual(tags)
    expect((await propertiesOf(user)).tags).toEqual(tags)
  })
})

describe('deltas', () => {
  test('are added to the stored values, which View user shows', async () => {
    const user = await aUser(app)
    await update(user, { deltas: { session_time: 60, session_count: 1 } })
    const { body } = await update(user, { deltas: { session_time: 25, session_count: 2 } })
    expect(body.properties).toMatchObject({ session_time: 85, session_count: 3 })
    expect(await propertiesOf(user)).toMatchObject({ session_time: 85, session_count: 3 })
  })

  test('that come at the same time are all added', async () => {
    const user = await aUser(app)
    await Promise.all(Array.from({ length: 30 }, () => update(user, { deltas: { session_time: 2, session_count: 1 } })))
    expect(await propertiesOf(user)).toMatchObject({ session_time: 60, session_count: 30 })
  })

  test('of sessions move last_active, unless the request says when it was', async () => {
    const user = await aUser(app)
    const created = nowSeconds()
    clock.advance({ hours: 1 })
    expect((await update(user, { properties: { language: 'en' } })).body.properties.last_active).toBe(created)
    expect((await update(user, { deltas: { session_count: 1 } })).body.properties.last_active).toBe(created + 3600)
    const said = await update(user, { deltas: { session_count: 1 }, properties: { last_active: 1_800_000_000 } })
    expect(said.body.properties).toMatchObject({ first_active: created, last_active: 1_800_000_000 })
  })

  test('of purchases are appended, and amount_spent grows exactly', async () => {
    const user = await aUser(app)
    const bought = [
      { sku: 'A', iso: 'USD', amount: '0.1', count: 1 },
      { sku: 'B', iso: 'USD', amount: '$0.20', count: 1 },
      { sku: 'C', iso: 'eur', amount: '€19.99', count: 3 },
    ]
    await update(user, { deltas: { purchases: bought.slice(0, 1) } })
    clock.advance({ seconds: 1 })
    const { body } = await update(user, { deltas: { purchases: bought.slice(1) } })
    expect(body.properties.purchases).toEqual(bought)
    expect(body.properties.amount_spent).toBe(60.27)
    expect(await propertiesOf(user)).toEqual(body.properties)
  })

  test('of a purchase without count count one', async () => {
    const user = await aUser(app)
    const { body } = await update(user, { deltas: { purchases: [{ sku: 'A', iso: 'USD', amount: '7' }] } })
    expect(body.properties).toMatchObject({
      amount_spent: 7,
      purchases: [{ sku: 'A', iso: 'USD', amount: '7', count: 1 }],
    })
  })

  test('of more than 100 purchases are all spent and kept; the newest 100 are answered', async () => {
    const user = await aUser(app)
    const buy = (from: number, count: number) =>
      Array.from({ length: count }, (_, n) => ({ sku: `s${from + n}`, iso: 'USD', amount: '1', count: 1 }))
    await update(user, { deltas: { purchases: buy(0, 100) } })
    clock.advance({ seconds: 1 })
    const { body } = await update(user, { deltas: { purchases: buy(100, 5) } })
    expect(body.properties.purchases).toEqual(buy(5, 100))
    expect(body.properties.amount_spent).toBe(105)
    expect(await propertiesOf(user)).toEqual(body.properties)
    const query = { text: 'select count(*) as n from purchases where user_id = $1', values: [user.id] }
    expect(Number((await app.db.query<{ n: number }>(query))[0]?.n)).toBe(105)
  })

  test('amount_spent itself is set by Create user alone', async () => {
    const user = await aUser(app, { properties: { amount_spent: 10 } })
    expect((await update(user, { properties: { amount_spent: 999 } })).body.properties.amount_spent).toBe(10)
  })

  test.each([
    [{ session_time: -1 }, 'deltas.session_time must be at least 0'],
    [{ session_count: -1 }, 'deltas.session_count must be at least 0'],
    [{ session_time: 1.5 }, 'deltas.session_time must be an integer or null'],
    [{ session_count: '1' }, 'deltas.session_count must be an integer or null'],
    [{ session_count: 2 ** 53 }, 'deltas.session_count must be at most 9007199254740991'],
    [{ purchases: {} }, 'deltas.purchases must be a list'],
  ])('%j is refused and nothing changes', async (deltas, title) => {
    const user = await aUser(app)
    const before = await propertiesOf(user)
    const field = `deltas.${Object.keys(deltas)[0]}`
    const body = { properties: { language: 'en' }, deltas }
    expect(told(await update(user, body))).toEqual(problem(400, 'request-0', title, { field }))
    expect(await propertiesOf(user)).toEqual(before)
  })

  test('that would carry a sum above 2^53-1 are refused, for the user and for the subscription', async () => {
    const most = Number.MAX_SAFE_INTEGER
    const title = 'the sum of the sessions would exceed 2^53-1'
    const user = await aUser(app, {
      subscriptions: [
        { type: 'Email', token: anEmail() },
        { type: 'Email', token: anEmail(), session_count: most, session_time: most },
      ],
    })
    const [plain, full] = user.subscriptionIds
    expect(told(await update(user, { deltas: { session_count: 1 } }, full))).toEqual(problem(400, 'request-0', title))
    expect(told(await update(user, { deltas: { session_time: 1 } }, full))).toEqual(problem(400, 'request-0', title))
    expect(await propertiesOf(user)).toMatchObject({ session_count: 0, session_time: 0 })
    expect((await update(user, { deltas: { session_time: most } })).body.properties.session_time).toBe(most)
    expect(told(await update(user, { deltas: { session_time: 1 } }, plain))).toEqual(problem(400, 'request-0', title))
    const { subscriptions } = await view(app, user)
    expect(subscriptions.find(({ id }: { id: string }) => id === plain)).toMatchObject({ session_time: 0 })
  })
})

describe('the header that selects a subscription', () => {
  test('makes sessions count for the user and for that subscription, and for no other', async () => {
    const drafts = [
      { type: 'Email', token: anEmail() },
      { type: 'AndroidPush', token: aName(), session_count: 5 },
    ]
    const user = await aUser(app, { subscriptions: drafts })
    const [email, push] = user.subscriptionIds as [string, string]
    const deltas = { session_time: 40, session_count: 1 }
    expect((await update(user, { deltas }, push)).status).toBe(202)
    expect((await update(user, { deltas }, push.toUpperCase())).status).toBe(202)
    const { properties, subscriptions } = await view(app, user)
    expect(properties).toMatchObject({ session_time: 80, session_count: 2 })
    const bySubscription = new Map(subscriptions.map((it: { id: string }) => [it.id, it]))
    expect(bySubscription.get(push)).toEqual(
      plainSubscription(app, {
        type: 'AndroidPush',
        token: drafts[1]?.token as string,
        session_count: 7,
        session_time: 80,
      }),
    )
    expect(bySubscription.get(email)).toMatchObject({ session_time: 0, session_count: 0 })
  })

  test('without it sessions count for the user alone', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    await update(user, { deltas: { session_time: 40, session_count: 1 } })
    const { properties, subscriptions } = await view(app, user)
    expect(properties).toMatchObject({ session_time: 40, session_count: 1 })
    expect(subscriptions[0]).toMatchObject({ session_time: 0, session_count: 0 })
  })

  test("naming somebody else's subscription, or none that exists, is a 404 and nothing changes", async () => {
    const user = await aUser(app)
    const other = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const before = [await view(app, user), await view(app, other)]
    const body = { properties: { language: 'en' }, deltas: { session_time: 1, session_count: 1 } }
    for (const id of [other.subscriptionIds[0], NOBODY])
      expect(told(await update(user, body, id))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect([await view(app, user), await view(app, other)]).toEqual(before)
  })

  test('that is no UUID is a 400', async () => {
    const user = await aUser(app)
    expect(told(await update(user, {}, 'x'))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { 'OneSignal-Subscription-Id': 'x' }),
    )
  })
})

describe('property updates per request', () => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, 'x']))

  test('100 are accepted: each tag is one, every other property is one', async () => {
    const user = await aUser(app)
    expect((await update(user, { properties: { tags: tags(100) } })).status).toBe(202)
    expect(Object.keys((await propertiesOf(user)).tags)).toHaveLength(100)
    expect((await update(user, { properties: { tags: tags(98), language: 'en', country: 'DE' } })).status).toBe(202)
  })

  test.each([
    ['101 tags', { tags: tags(101) }],
    ['100 tags and a language', { tags: tags(100), language: 'en' }],
    ['100 tags to remove and a country', { tags: tags(100), country: null }],
  ])('%s are refused and nothing changes', async (_, properties) => {
    const user = await aUser(app)
    const before = await propertiesOf(user)
    expect(told(await update(user, { properties }))).toEqual(
      problem(400, 'request-0', 'a request can change at most 100 properties, this one changes 101'),
    )
    expect(await propertiesOf(user)).toEqual(before)
  })

  test('a user may have more than 100 tags, set by several requests', async () => {
    const user = await aUser(app, { properties: { tags: tags(100) } })
    const { body } = await update(user, { properties: { tags: { one: 'more' } } })
    expect(Object.keys(body.properties.tags)).toHaveLength(101)
  })
})
