import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import {
  aName,
  aNamelessUser,
  anEmail,
  anId,
  aPhone,
  aUser,
  NOBODY,
  plainSubscription,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  USER_NOT_FOUND,
  view,
} from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

const NOW = Date.parse('2030-01-01T09:00:00Z') / 1000

let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock: virtualClock('2030-01-01T09:00:00Z') })
})
afterAll(() => app.close())

const create = (body: unknown) => app.app('/users', { body })

const untouchedProperties = {
  tags: {},
  first_active: NOW,
  last_active: NOW,
  session_count: 0,
  session_time: 0,
  amount_spent: 0,
  purchases: [],
}

const countUsers = async () =>
  Number((await app.db.query<{ n: number }>({ text: 'select count(*) as n from users', values: [] }))[0]?.n)

describe('the answer', () => {
  test('a new user is answered with 201 and its identity, properties and subscriptions', async () => {
    const external_id = aName()
    const email = anEmail()
    expect(
      told(
        await create({
          identity: { external_id, customer: `${external_id}-c` },
          properties: {
            tags: { plan: 'gold' },
            language: 'en',
            timezone_id: 'Europe/Paris',
            lat: 48.85,
            long: 2.35,
            country: 'FR',
            first_active: 1_600_000_000,
            last_active: 1_700_000_000,
            ip: '203.0.113.7',
            test_user_name: 'Anna',
            amount_spent: 12.5,
          },
          subscriptions: [
            { type: 'email', token: email },
            {
              type: 'iOSPush',
              token: `${external_id}-push`,
              enabled: true,
              notification_types: 7,
              session_time: 60,
              session_count: 2,
              sdk: '5.2.0',
              device_model: 'iPhone15,2',
              device_os: '17.1',
              rooted: true,
              test_type: 1,
              app_version: '3.1',
              net_type: 1,
              carrier: 'Orange',
              web_auth: 'auth',
              web_p256: 'p256',
            },
          ],
        }),
      ),
    ).toEqual({
      status: 201,
      body: {
        identity: { onesignal_id: anId(), external_id, customer: `${external_id}-c` },
        properties: {
          ...untouchedProperties,
          tags: { plan: 'gold' },
          language: 'en',
          timezone_id: 'Europe/Paris',
          lat: 48.85,
          long: 2.35,
          country: 'FR',
          first_active: 1_600_000_000,
          last_active: 1_700_000_000,
          ip: '203.0.113.7',
          test_user_name: 'Anna',
          amount_spent: 12.5,
        },
        subscriptions: [
          plainSubscription(app, { type: 'email', token: email }),
          {
            id: anId(),
            app_id: app.tenant.id,
            type: 'iOSPush',
            token: `${external_id}-push`,
            enabled: true,
            notification_types: 7,
            session_time: 60,
            session_count: 2,
            sdk: '5.2.0',
            device_model: 'iPhone15,2',
            device_os: '17.1',
            rooted: true,
            test_type: 1,
            app_version: '3.1',
            net_type: 1,
            carrier: 'Orange',
            web_auth: 'auth',
            web_p256: 'p256',
          },
        ],
      },
    })
  })

  test('what is answered is what is stored', async () => {
    const created = await create({
      identity: { external_id: aName(), customer: aName() },
      properties: { tags: { a: '1' }, purchases: [{ sku: 'A', iso: 'EUR', amount: '2.50', count: 2 }] },
      subscriptions: [
        { type: 'Email', token: anEmail() },
        { type: 'SMS', token: aPhone(), session_count: 3 },
      ],
    })
    expect(created.status).toBe(201)
    const seen = await app.app(`/users/by/onesignal_id/${created.body.identity.onesignal_id}`)
    const byType = (list: { type: string }[]) => list.toSorted((a, b) => (a.type < b.type ? -1 : 1))
    expect({ ...seen.body, subscriptions: byType(seen.body.subscriptions) }).toEqual(created.body)
    expect(seen.body.properties.amount_spent).toBe(5)
  })

  test('an existing user that is changed is answered with 202 and everything stored', async () => {
    const user = await aUser(app, {
      properties: { tags: { kept: '1', changed: '1', removed: '1' }, language: 'en', country: 'DE' },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    const answer = await create({
      identity: { external_id: user.externalId },
      properties: { tags: { changed: '2', removed: '', added: '1' }, language: 'fr' },
    })
    expect(told(answer)).toEqual({
      status: 202,
      body: {
        identity: { onesignal_id: user.id, external_id: user.externalId },
        properties: {
          ...untouchedProperties,
          tags: { kept: '1', changed: '2', added: '1' },
          language: 'fr',
          country: 'DE',
        },
        subscriptions: [],
      },
    })
    expect((await view(app, user)).subscriptions).toHaveLength(1)
  })

  test('subscriptions are answered in the order of the request', async () => {
    const { subscriptionIds } = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: aName() }] })
    const drafts = [
      { type: 'SMS', token: aPhone() },
      { id: subscriptionIds[0] },
      { type: 'Email', token: anEmail() },
      { type: 'AndroidPush', token: aName('zzz') },
      { type: 'AndroidPush', token: aName('aaa') },
    ]
    const { body } = await create({ identity: { external_id: aName() }, subscriptions: drafts })
    expect(body.subscriptions.map((it: { type: string }) => it.type)).toEqual([
      'SMS',
      'AndroidPush',
      'Email',
      'AndroidPush',
      'AndroidPush',
    ])
    expect(body.subscriptions[1].id).toBe(subscriptionIds[0])
    expect(body.subscriptions[3].token).toBe(drafts[3]?.token)
  })

  test('a subscription given twice is one, answered twice', async () => {
    const token = anEmail()
    const { status, body } = await create({
      identity: { external_id: aName() },
      subscriptions: [
        { type: 'Email', token },
        { type: 'email', token: token.toUpperCase(), device_os: '1' },
      ],
    })
    expect(status).toBe(201)
    expect(body.subscriptions).toHaveLength(2)
    expect(body.subscriptions[1]).toEqual(body.subscriptions[0])
    const seen = await app.app(`/users/by/onesignal_id/${body.identity.onesignal_id}`)
    expect(seen.body.subscriptions).toHaveLength(1)
  })

  test('fields of the service and unknown fields are not taken', async () => {
    const { status, body } = await create({
      refresh_device_metadata: true,
      app_id: NOBODY,
      identity: { external_id: aName() },
      properties: { created_at: 1, session_time: 9, session_count: 9, nonsense: { a: 1 } },
      subscriptions: [{ type: 'AndroidPush', token: aName(), app_id: NOBODY, user_id: NOBODY, nonsense: 1 }],
    })
    expect(status).toBe(201)
    expect(body.properties).toEqual(untouchedProperties)
    expect(body.subscriptions[0]).toEqual(plainSubscription(app, { type: 'AndroidPush', token: expect.any(String) }))
  })
})

describe('identity or subscriptions must be present', () => {
  const title = 'a user needs an identity with at least one alias, or at least one subscription'
  test.each([
    ['nothing', {}],
    ['properties alone', { properties: { tags: { a: '1' } } }],
    ['an empty identity', { identity: {} }],
    ['empty subscriptions', { subscriptions: [] }],
    ['both empty', { identity: {}, subscriptions: [] }],
  ])('%s is refused', async (_, body) => {
    const before = await countUsers()
    expect(told(await create(body))).toEqual(problem(400, 'request-0', title))
    expect(await countUsers()).toBe(before)
  })

  test('an empty identity beside a subscription is a nameless user', async () => {
    const { status, body } = await create({ identity: {}, subscriptions: [{ type: 'Email', token: anEmail() }] })
    expect(status).toBe(201)
    expect(body.identity).toEqual({ onesignal_id: anId() })
  })
})

describe('a user without subscriptions', () => {
  test.each([
    ['external_id', () => ({ external_id: aName() })],
    ['a custom alias', () => ({ customer: aName() })],
  ])('is made from %s alone, and can be updated and given subscriptions later', async (_, identity) => {
    const given = identity()
    const created = await create({ identity: given })
    expect(told(created)).toEqual({
      status: 201,
      body: {
        identity: { onesignal_id: anId(), ...given },
        properties: untouchedProperties,
        subscriptions: [],
      },
    })
    const path = `/users/by/onesignal_id/${created.body.identity.onesignal_id}`
    const updated = await app.app(path, { method: 'PATCH', body: { properties: { language: 'de' } } })
    expect(updated).toMatchObject({ status: 202, body: { properties: { language: 'de' } } })
    const token = anEmail()
    const added = await app.app(`${path}/subscriptions`, { body: { subscription: { type: 'Email', token } } })
    expect(added.status).toBe(201)
    expect((await app.app(path)).body.subscriptions).toEqual([plainSubscription(app, { type: 'Email', token })])
  })
})

describe('external_id is unique across users', () => {
  test('a second create with it changes the first user and makes nobody', async () => {
    const user = await aUser(app)
    const before = await countUsers()
    const again = await create({ identity: { external_id: user.externalId }, properties: { tags: { a: '1' } } })
    expect(again).toMatchObject({ status: 202, body: { identity: { onesignal_id: user.id } } })
    expect(await countUsers()).toBe(before)
  })

  test('many at once make one user', async () => {
    const external_id = aName()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        create({ identity: { external_id }, properties: { tags: { [`t${n}`]: 'x' } } }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(202)])
    expect(new Set(answers.map(({ body }) => body.identity.onesignal_id)).size).toBe(1)
    const seen = await app.app(`/users/by/external_id/${external_id}`)
    expect(Object.keys(seen.body.properties.tags)).toHaveLength(20)
  })

  test('each app has its own', async () => {
    const user = await aUser(app)
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const body = { identity: { external_id: user.externalId } }
    const answer = await app.request(`/apps/${other.id}/users`, { body, headers })
    expect(answer.status).toBe(201)
    expect(answer.body.identity.onesignal_id).not.toBe(user.id)
  })
})

describe('aliases of an existing user', () => {
  test('any of its aliases finds it; others are added, and a known label gets the new value', async () => {
    const user = await aUser(app, { identity: { customer: aName(), crm: aName() } })
    const { identity } = await view(app, user)
    const customer = aName()
    const facebook = aName()
    const answer = await create({ identity: { external_id: user.externalId, customer, facebook } })
    expect(answer).toMatchObject({ status: 202 })
    expect(answer.body.identity).toEqual({ ...identity, customer, facebook })
    expect(told(await app.app(`/users/by/customer/${identity.customer}`))).toEqual(USER_NOT_FOUND)
    const byCustom = await create({ identity: { crm: identity.crm }, properties: { language: 'it' } })
    expect(byCustom).toMatchObject({ status: 202, body: { identity: { onesignal_id: user.id } } })
  })

  test('aliases of two users are a 409 that names them, and nothing changes for either', async () => {
    const left = await aUser(app, { identity: { customer: aName() } })
    const right = await aUser(app, { identity: { customer: aName() } })
    const { identity } = await view(app, right)
    const before = [await view(app, left), await view(app, right)]
    const labels = { external_id: left.externalId, customer: identity.customer }
    const answer = await create({
      identity: { ...labels, fresh: aName() },
      properties: { tags: { a: '1' } },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    expect(told(answer)).toEqual(
      problem(409, 'user-2', 'One or more Aliases claimed by another User', { ...labels, conflicting_aliases: labels }),
    )
    expect([await view(app, left), await view(app, right)]).toEqual(before)
  })

  test('onesignal_id cannot be set, not even to what it is', async () => {
    const user = await aUser(app)
    const before = await countUsers()
    for (const onesignal_id of [NOBODY, user.id, 'x'])
      for (const identity of [{ onesignal_id }, { onesignal_id, external_id: user.externalId }])
        expect(told(await create({ identity, subscriptions: [{ type: 'Email', token: anEmail() }] }))).toEqual(
          problem(400, 'request-0', 'onesignal_id is assigned by the service and cannot be set'),
        )
    expect(await countUsers()).toBe(before)
  })
})

describe('supplying a subscription', () => {
  test('creates it', async () => {
    const user = await aUser(app)
    const token = anEmail()
    const answer = await create({
      identity: { external_id: user.externalId },
      subscriptions: [{ type: 'Email', token }],
    })
    expect(answer.status).toBe(202)
    expect((await view(app, user)).subscriptions).toEqual([plainSubscription(app, { type: 'Email', token })])
  })

  test('by its token transfers it, with its fields and its id', async () => {
    const token = aPhone()
    const from = await aUser(app, { subscriptions: [{ type: 'SMS', token, device_os: '9' }] })
    const to = await aUser(app)
    const answer = await create({
      identity: { external_id: to.externalId },
      subscriptions: [{ type: 'sms', token, carrier: 'O2' }],
    })
    expect(answer.status).toBe(202)
    const moved = plainSubscription(app, { type: 'SMS', token, device_os: '9', carrier: 'O2' })
    expect(answer.body.subscriptions).toEqual([{ ...moved, id: from.subscriptionIds[0] }])
    expect((await view(app, from)).subscriptions).toEqual([])
    expect((await view(app, to)).subscriptions).toEqual(answer.body.subscriptions)
  })

  test('by its id alone transfers it as it is', async () => {
    const from = await aNamelessUser(app, { type: 'iOSPush', token: aName(), enabled: false, sdk: '5' })
    const before = (await view(app, from)).subscriptions
    const answer = await create({
      identity: { external_id: aName() },
      subscriptions: [{ id: from.subscriptionIds[0]?.toUpperCase() }],
    })
    expect(answer.status).toBe(201)
    expect(answer.body.subscriptions).toEqual(before)
    expect((await view(app, from)).subscriptions).toEqual([])
  })

  test('modifies one that the user has', async () => {
    const token = aName()
    const user = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token, app_version: '1' }] })
    const [id] = user.subscriptionIds
    const subscriptions = [{ id, type: 'androidpush', token: `${token}-new`, enabled: false, app_version: '2' }]
    const answer = await create({ identity: { external_id: user.externalId }, subscriptions })
    expect(answer.status).toBe(202)
    const changed = { type: 'AndroidPush', token: `${token}-new`, enabled: false, app_version: '2', id }
    expect((await view(app, user)).subscriptions).toEqual([
      plainSubscription(app, { ...changed, notification_types: -31 }),
    ])
  })

  test('without identity: unknown tokens make one user, known ones change their owner', async () => {
    const drafts = [
      { type: 'Email', token: anEmail() },
      { type: 'SMS', token: aPhone() },
    ]
    const created = await create({ subscriptions: drafts })
    expect(created.status).toBe(201)
    expect(created.body.identity).toEqual({ onesignal_id: anId() })
    const subscriptions = [drafts[1], { type: 'ChromePush', token: aName() }]
    const again = await create({ subscriptions, properties: { language: 'es' } })
    expect(again).toMatchObject({ status: 202, body: { identity: created.body.identity } })
    const seen = await app.app(`/users/by/onesignal_id/${created.body.identity.onesignal_id}`)
    expect(seen.body.subscriptions).toHaveLength(3)
    expect(seen.body.properties.language).toBe('es')
  })

  test('without identity: each call with new tokens is a user of its own', async () => {
    const [left, right] = [await aNamelessUser(app), await aNamelessUser(app)]
    expect(left.id).not.toBe(right.id)
  })

  test('without identity: tokens of different users are a 409, and nothing changes', async () => {
    const tokens = [anEmail(), anEmail()]
    const left = await aUser(app, { subscriptions: [{ type: 'Email', token: tokens[0] as string }] })
    const right = await aUser(app, { subscriptions: [{ type: 'Email', token: tokens[1] as string }] })
    const answer = await create({ subscriptions: tokens.map((token) => ({ type: 'Email', token })) })
    expect(told(answer)).toEqual(
      problem(409, 'user-3', 'The subscriptions belong to different users; name the user with an identity', {
        subscriptions: [left.subscriptionIds[0], right.subscriptionIds[0]],
      }),
    )
    expect((await view(app, left)).subscriptions).toHaveLength(1)
  })

  test('an id that is not there is a 404, a malformed one a 400, and nobody is made', async () => {
    const before = await countUsers()
    const identity = { external_id: aName() }
    expect(told(await create({ identity, subscriptions: [{ id: NOBODY }] }))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await create({ identity, subscriptions: [{ id: 'x' }] }))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { 'subscriptions[0].id': 'x' }),
    )
    expect(await countUsers()).toBe(before)
  })

  test('an unknown id with type and token makes a subscription with an id of the service', async () => {
    const subscriptions = [{ id: NOBODY, type: 'AndroidPush', token: aName() }]
    const { status, body } = await create({ identity: { external_id: aName() }, subscriptions })
    expect(status).toBe(201)
    expect(body.subscriptions[0].id).not.toBe(NOBODY)
  })

  test('one that is wrong refuses the whole request', async () => {
    const identity = { external_id: aName() }
    const subscriptions = [
      { type: 'Email', token: anEmail() },
      { type: 'Email', token: 'nonsense' },
    ]
    expect(told(await create({ identity, subscriptions }))).toEqual(
      problem(400, 'request-0', '"nonsense" is not a valid email address'),
    )
    expect((await app.app(`/users/by/external_id/${identity.external_id}`)).status).toBe(404)
  })

  test('a subscription of another app is not found', async () => {
    const { subscriptionIds } = await aNamelessUser(app)
    const other = await app.anotherTenant()
    const answer = await app.request(`/apps/${other.id}/users`, {
      headers: { authorization: `Key ${other.key}` },
      body: { identity: { external_id: 'x' }, subscriptions: [{ id: subscriptionIds[0] }] },
    })
    expect(told(answer)).toEqual(SUBSCRIPTION_NOT_FOUND)
  })
})

describe('limits of a user', () => {
  const aliases = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`label${n}`, aName()]))
  const emails = (count: number) => Array.from({ length: count }, () => ({ type: 'Email', token: anEmail() }))

  test('one external_id and ten custom aliases are accepted, eleven are a 409 and nobody is made', async () => {
    const ten = { external_id: aName(), ...aliases(10) }
    const accepted = await create({ identity: ten })
    expect(accepted.status).toBe(201)
    expect(Object.keys(accepted.body.identity)).toHaveLength(12)
    const before = await countUsers()
    expect(told(await create({ identity: { external_id: aName(), ...aliases(11) } }))).toEqual(
      problem(409, 'Alias Limit Exceeded', 'A user can have at most 10 custom aliases', { limit: 10 }),
    )
    expect(await countUsers()).toBe(before)
  })

  test.each([
    ['128 letters', 'x', 128, 201],
    ['129 letters', 'x', 129, 400],
    ['128 emoji', '🔔', 128, 201],
    ['129 emoji', '🔔', 129, 400],
  ])('a label and a value of %s', async (_, letter, length, status) => {
    const name = aName()
    const text = name + letter.repeat(length - name.length)
    expect((await create({ identity: { label: text } })).status).toBe(status)
    expect((await create({ identity: { [text]: 'value' } })).status).toBe(status)
  })

  test('an alias that is too long or empty is told apart', async () => {
    const title = (what: string, rule: string) => problem(400, 'request-0', `an alias ${what} must ${rule}`)
    const long = 'x'.repeat(129)
    const most = 'have at most 128 characters'
    expect(told(await create({ identity: { external_id: long } }))).toEqual(title('value of "external_id"', most))
    expect(told(await create({ identity: { [long]: 'x' } }))).toEqual(title('label', most))
    expect(told(await create({ identity: { external_id: '' } }))).toEqual(
      title('value of "external_id"', 'not be empty'),
    )
    expect(told(await create({ identity: { '': 'x' } }))).toEqual(title('label', 'not be empty'))
  })

  test('twenty subscriptions are accepted, twenty-one are a 409 and nobody is made', async () => {
    const accepted = await create({ identity: { external_id: aName() }, subscriptions: emails(20) })
    expect(accepted.status).toBe(201)
    expect(accepted.body.subscriptions).toHaveLength(20)
    const before = await countUsers()
    expect(told(await create({ identity: { external_id: aName() }, subscriptions: emails(21) }))).toEqual(
      problem(409, 'Subscription Limit Exceeded', 'A user can have at most 20 subscriptions', { limit: 20 }),
    )
    expect(await countUsers()).toBe(before)
  })

  test('a full user takes no transfer, but keeps what it has', async () => {
    const user = await aUser(app, { subscriptions: emails(20) })
    const other = await aNamelessUser(app)
    const identity = { external_id: user.externalId }
    const refused = await create({ identity, subscriptions: [{ id: other.subscriptionIds[0] }] })
    expect(refused).toMatchObject({ status: 409, body: { errors: [{ code: 'Subscription Limit Exceeded' }] } })
    expect((await view(app, other)).subscriptions).toHaveLength(1)
    const own = await create({ identity, subscriptions: [{ id: user.subscriptionIds[0], carrier: 'O2' }] })
    expect(own.status).toBe(202)
  })

  test('100 property updates are accepted, 101 refused', async () => {
    const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, 'x']))
    const properties = { tags: tags(98), language: 'en', country: 'DE' }
    expect((await create({ identity: { external_id: aName() }, properties })).status).toBe(201)
    const refused = await create({ identity: { external_id: aName() }, properties: { ...properties, tags: tags(99) } })
    expect(told(refused)).toEqual(
      problem(400, 'request-0', 'a request can change at most 100 properties, this one changes 101'),
    )
  })
})
