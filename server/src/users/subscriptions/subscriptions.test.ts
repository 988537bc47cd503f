import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aName,
  aNamelessUser,
  anEmail,
  aPhone,
  aUser,
  NOBODY,
  plainSubscription,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  USER_NOT_FOUND,
  view,
} from '../../../test/users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const add = (path: string, subscription: unknown) => app.app(`${path}/subscriptions`, { body: { subscription } })
const update = (id: string | undefined, subscription: unknown) =>
  app.app(`/subscriptions/${id}`, { method: 'PATCH', body: { subscription } })
const remove = (id: string | undefined) => app.app(`/subscriptions/${id}`, { method: 'DELETE' })
const transfer = (id: string | undefined, identity: unknown) =>
  app.app(`/subscriptions/${id}/owner`, { method: 'PATCH', body: { identity } })
const byToken = (type: string, token: string, subscription: unknown) =>
  app.app(`/subscriptions_by_token/${type}/${encodeURIComponent(token)}`, { method: 'PATCH', body: { subscription } })
const full = () => Array.from({ length: 20 }, () => ({ type: 'Email', token: anEmail() }))
const FULL = problem(409, 'Subscription Limit Exceeded', 'A user can have at most 20 subscriptions', { limit: 20 })

const fields = {
  enabled: true,
  notification_types: 1,
  session_time: 90,
  session_count: 4,
  sdk: '5.2.0',
  device_model: 'Pixel 8',
  device_os: '14',
  rooted: true,
  test_type: 2,
  app_version: '1.2.3',
  net_type: 1,
  carrier: 'Orange',
  web_auth: 'secret',
  web_p256: 'public',
}

describe('create subscription', () => {
  test('a new one is answered with 201 and all its fields', async () => {
    const user = await aUser(app)
    const token = aName()
    const answer = await add(user.path, { type: 'ChromePush', token, ...fields })
    const subscription = { id: expect.any(String), app_id: app.tenant.id, type: 'ChromePush', token, ...fields }
    expect(told(answer)).toEqual({ status: 201, body: { subscription } })
    expect((await view(app, user)).subscriptions).toEqual([answer.body.subscription])
  })

  test('one that the user has is changed: 202 and the same id', async () => {
    const token = anEmail()
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token }] })
    const answer = await add(user.path, { type: 'Email', token, sdk: '6' })
    expect(told(answer)).toEqual({
      status: 202,
      body: { subscription: plainSubscription(app, { id: user.subscriptionIds[0], type: 'Email', token, sdk: '6' }) },
    })
  })

  test("somebody else's is transferred: 202 and the same id", async () => {
    const token = aPhone()
    const from = await aUser(app, { subscriptions: [{ type: 'SMS', token }] })
    const to = await aUser(app)
    const answer = await add(`/users/by/external_id/${to.externalId}`, { type: 'SMS', token })
    expect(answer).toMatchObject({ status: 202, body: { subscription: { id: from.subscriptionIds[0] } } })
    expect((await view(app, from)).subscriptions).toEqual([])
    expect((await view(app, to)).subscriptions).toHaveLength(1)
  })

  test('emails are the same in any case, and answered as they were first given; push tokens are not', async () => {
    const user = await aUser(app)
    const token = anEmail()
    const first = await add(user.path, { type: 'email', token })
    const second = await add(user.path, { type: 'EMAIL', token: token.toUpperCase() })
    expect(second).toMatchObject({ status: 202, body: { subscription: { id: first.body.subscription.id } } })
    expect(second.body.subscription.type).toBe('email')
    const push = aName()
    expect((await add(user.path, { type: 'AndroidPush', token: push })).status).toBe(201)
    expect((await add(user.path, { type: 'AndroidPush', token: push.toUpperCase() })).status).toBe(201)
    expect((await add(user.path, { type: 'iOSPush', token: push })).status).toBe(201)
  })

  test('a push subscription may come without a token; each is one of its own', async () => {
    const user = await aUser(app)
    const [first, second] = [
      await add(user.path, { type: 'iOSPush' }),
      await add(user.path, { type: 'iOSPush', token: '' }),
    ]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.body.subscription).toEqual(plainSubscription(app, { type: 'iOSPush', token: '' }))
    expect(second.body.subscription.id).not.toBe(first.body.subscription.id)
  })

  test.each([
    'iOSPush',
    'AndroidPush',
    'FireOSPush',
    'ChromeExtensionPush',
    'ChromePush',
    'WindowsPush',
    'SafariLegacyPush',
    'FirefoxPush',
    'macOSPush',
    'HuaweiPush',
    'SafariPush',
  ])('takes the type %s, in any case', async (type) => {
    const user = await aUser(app)
    expect((await add(user.path, { type, token: aName() })).body.subscription.type).toBe(type)
    expect((await add(user.path, { type: type.toLowerCase(), token: aName() })).status).toBe(201)
  })

  test('a user has at most 20; one more is a 409, also by transfer, and nothing moves', async () => {
    const user = await aUser(app, { subscriptions: full() })
    expect(told(await add(user.path, { type: 'SMS', token: aPhone() }))).toEqual(FULL)
    const other = await aNamelessUser(app)
    expect(told(await add(user.path, { id: other.subscriptionIds[0] }))).toEqual(FULL)
    expect((await view(app, other)).subscriptions).toHaveLength(1)
    expect((await view(app, user)).subscriptions).toHaveLength(20)
    expect((await remove(user.subscriptionIds[7])).status).toBe(202)
    expect((await add(user.path, { type: 'SMS', token: aPhone() })).status).toBe(201)
  })

  test('of an unknown user is a 404', async () => {
    expect(told(await add(`/users/by/external_id/${aName()}`, { type: 'Email', token: anEmail() }))).toEqual(
      USER_NOT_FOUND,
    )
  })

  test('without type is refused', async () => {
    const user = await aUser(app)
    expect(told(await add(user.path, { token: 'x' }))).toEqual(
      problem(400, 'request-0', 'subscription.type is required'),
    )
    const bare = await app.app(`${user.path}/subscriptions`, { body: { type: 'Email', token: anEmail() } })
    expect(told(bare)).toEqual(problem(400, 'request-0', 'subscription is required', { field: 'subscription' }))
  })
})

describe('addresses', () => {
  test.each([
    'a@b.co',
    'first.last+tag@sub.example.com',
    "o'hara@example.com",
    'x_y-z@ex-ample.org',
    'müller@exämple.de',
    `${'a'.repeat(64)}@example.com`,
  ])('%j is an email address', async (token) => {
    const user = await aUser(app)
    expect((await add(user.path, { type: 'Email', token })).status).toBeLessThan(300)
  })

  test.each([
    '',
    'nonsense',
    '@example.com',
    'a@',
    'a@b',
    'a b@example.com',
    'a@exa mple.com',
    'a@@example.com',
    'a@b@example.com',
    '.a@example.com',
    'a.@example.com',
    'a..b@example.com',
    'a@example..com',
    'a@-example.com',
    'a@example.com\n',
    'Anna <a@example.com>',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.${'e'.repeat(63)}.com`,
  ])('%j is none', async (token) => {
    const user = await aUser(app)
    expect(told(await add(user.path, { type: 'Email', token }))).toEqual(
      problem(400, 'request-0', `"${token}" is not a valid email address`),
    )
    expect((await view(app, user)).subscriptions).toEqual([])
  })

  test.each(['+15558675309', '+4915112345678', '+1234567', '+123456789012345'])('%j is E.164', async (token) => {
    const user = await aUser(app)
    expect((await add(user.path, { type: 'SMS', token })).status).toBe(201)
  })

  test.each([
    '',
    '15558675309',
    '+05558675309',
    '+1 555 867 5309',
    '+1-555-8675309',
    '+123456',
    '+1234567890123456',
    'x',
  ])('%j is not E.164', async (token) => {
    const user = await aUser(app)
    expect(told(await add(user.path, { type: 'SMS', token }))).toEqual(
      problem(400, 'request-0', `"${token}" is not a phone number in E.164 form, such as +15558675309`),
    )
  })

  test('an unknown type is refused', async () => {
    const user = await aUser(app)
    expect(told(await add(user.path, { type: 'Pigeon', token: 'x' }))).toEqual(
      problem(400, 'request-0', /^subscription type "Pigeon" is not one of iOSPush, /),
    )
  })

  test.each([
    [{ token: 5 }, 'subscription.token must be a string or null'],
    [{ token: 'x'.repeat(4097) }, 'subscription.token must have at most 4096 characters'],
    [{ enabled: 'yes' }, 'subscription.enabled must be true or false or null'],
    [{ notification_types: 1.5 }, 'subscription.notification_types must be an integer or null'],
    [{ session_time: -1 }, 'subscription.session_time must be at least 0'],
    [{ session_count: '1' }, 'subscription.session_count must be an integer or null'],
    [{ rooted: 1 }, 'subscription.rooted must be true or false or null'],
    [{ test_type: 2 ** 31 }, 'subscription.test_type must be at most 2147483647'],
    [{ net_type: 'wifi' }, 'subscription.net_type must be an integer or null'],
    [{ sdk: 5 }, 'subscription.sdk must be a string or null'],
    [{ carrier: 'x'.repeat(257) }, 'subscription.carrier must have at most 256 characters'],
    [{ web_auth: {} }, 'subscription.web_auth must be a string or null'],
  ])('%j is refused', async (wrong, title) => {
    const user = await aUser(app)
    const field = `subscription.${Object.keys(wrong)[0]}`
    const answer = await add(user.path, { type: 'AndroidPush', token: aName(), ...wrong })
    expect(told(answer)).toEqual(problem(400, 'request-0', title, { field }))
  })

  test('a push token of 4,096 characters is kept whole', async () => {
    const user = await aUser(app)
    const token = aName().padEnd(4096, '🔔'.repeat(2048)).slice(0, 4096).toWellFormed()
    const { status, body } = await add(user.path, { type: 'FirefoxPush', token })
    expect(status).toBe(201)
    expect(body.subscription.token).toBe(token)
    expect((await add(user.path, { type: 'FirefoxPush', token })).status).toBe(202)
  })
})

describe('update subscription', () => {
  test('changes the fields given, leaves the others, answers the whole', async () => {
    const token = aName()
    const user = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token, sdk: '5', carrier: 'O2' }] })
    const [id] = user.subscriptionIds
    const answer = await update(id?.toUpperCase(), { ...fields, carrier: null, token: `${token}-2`, app_id: NOBODY })
    const subscription = {
      id,
      app_id: app.tenant.id,
      type: 'AndroidPush',
      ...fields,
      carrier: 'O2',
      token: `${token}-2`,
    }
    expect(told(answer)).toEqual({ status: 200, body: { subscription } })
    expect((await view(app, user)).subscriptions).toEqual([subscription])
  })

  test('enabled and notification_types follow each other', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: aName() }] })
    const [id] = user.subscriptionIds
    const state = async (change: object) => {
      const { enabled, notification_types } = (await update(id, change)).body.subscription
      return { enabled, notification_types }
    }
    expect(await state({ enabled: false })).toEqual({ enabled: false, notification_types: -31 })
    expect(await state({ enabled: true })).toEqual({ enabled: true, notification_types: 1 })
    expect(await state({ enabled: false, notification_types: -2 })).toEqual({ enabled: false, notification_types: -2 })
    expect(await state({ enabled: true })).toEqual({ enabled: true, notification_types: 1 })
  })

  test('the type may be repeated but not changed', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [id] = user.subscriptionIds
    expect((await update(id, { type: 'email', sdk: '1' })).status).toBe(200)
    expect(told(await update(id, { type: 'SMS' }))).toEqual(
      problem(400, 'request-0', 'the type of a subscription cannot change'),
    )
  })

  test.each([
    ['with its type', { type: 'Email' }],
    ['without type', {}],
  ])('a token that another subscription has is a 409, %s', async (_, more) => {
    const token = anEmail()
    const holder = await aUser(app, { subscriptions: [{ type: 'Email', token }] })
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const before = await view(app, user)
    expect(told(await update(user.subscriptionIds[0], { ...more, token: token.toUpperCase() }))).toEqual(
      problem(409, 'subscription-1', 'Another subscription has this token', {
        subscription_id: holder.subscriptionIds[0],
      }),
    )
    expect(await view(app, user)).toEqual(before)
  })

  test('a token that is no address of its type is refused', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    expect(told(await update(user.subscriptionIds[0], { token: 'nonsense' }))).toEqual(
      problem(400, 'request-0', '"nonsense" is not a valid email address'),
    )
  })

  test('an unknown one is a 404, a malformed id a 400', async () => {
    expect(told(await update(NOBODY, {}))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await update('x', {}))).toEqual(problem(400, 'request-1', 'Invalid UUID', { subscription_id: 'x' }))
  })
})

describe('update subscription by token', () => {
  test('finds it by type and token, in any case of type and email', async () => {
    const token = anEmail()
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token }] })
    const answer = await byToken('email', token.toUpperCase(), { enabled: false })
    const subscription = plainSubscription(app, { type: 'Email', token, enabled: false, notification_types: -31 })
    expect(told(answer)).toEqual({
      status: 202,
      body: { subscription: { ...subscription, id: user.subscriptionIds[0] } },
    })
    expect((await view(app, user)).subscriptions).toEqual([answer.body.subscription])
  })

  test('takes a token with slashes, plus signs and spaces, encoded', async () => {
    const token = `https://push.example/send/${aName('a b+c')}`
    await aUser(app, { subscriptions: [{ type: 'FirefoxPush', token }] })
    expect(await byToken('FirefoxPush', token, { sdk: '9' })).toMatchObject({
      status: 202,
      body: { subscription: { token, sdk: '9' } },
    })
    const phone = aPhone()
    await aUser(app, { subscriptions: [{ type: 'SMS', token: phone }] })
    expect((await byToken('SMS', phone, { carrier: 'O2' })).status).toBe(202)
  })

  test('an unknown token is a 404, an unknown type a 400', async () => {
    expect(told(await byToken('Email', anEmail(), { enabled: true }))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect((await byToken('Pigeon', 'x', {})).status).toBe(400)
  })

  test('a token that another subscription has is a 409', async () => {
    const [mine, other] = [aName(), aName()]
    await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: mine }] })
    await aUser(app, { subscriptions: [{ type: 'AndroidPush', token: other }] })
    expect(await byToken('AndroidPush', mine, { token: other })).toMatchObject({
      status: 409,
      body: { errors: [{ code: 'subscription-1' }] },
    })
  })
})

describe('delete subscription', () => {
  test('answers 202, and it is gone; its user stays even without any', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    expect(told(await remove(user.subscriptionIds[0]))).toEqual({ status: 202, body: {} })
    expect(await view(app, user)).toMatchObject({ identity: { external_id: user.externalId }, subscriptions: [] })
    expect(told(await remove(user.subscriptionIds[0]))).toEqual(SUBSCRIPTION_NOT_FOUND)
  })

  test('the same address afterwards is a new subscription with another id', async () => {
    const token = anEmail()
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token }] })
    await remove(user.subscriptionIds[0])
    const again = await add(user.path, { type: 'Email', token })
    expect(again.status).toBe(201)
    expect(again.body.subscription.id).not.toBe(user.subscriptionIds[0])
  })

  test('an unknown one is a 404, a malformed id a 400', async () => {
    expect(told(await remove(NOBODY))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await remove('x'))).toEqual(problem(400, 'request-1', 'Invalid UUID', { subscription_id: 'x' }))
  })
})

describe('transfer subscription', () => {
  test.each(['external_id', 'onesignal_id', 'crm'])('to the user named by %s answers its identity', async (label) => {
    const from = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail(), sdk: '5' }] })
    const to = await aUser(app, { identity: { crm: aName() } })
    const { identity } = await view(app, to)
    const before = (await view(app, from)).subscriptions
    const answer = await transfer(from.subscriptionIds[0], { [label]: identity[label] })
    expect(told(answer)).toEqual({ status: 200, body: { identity } })
    expect((await view(app, from)).subscriptions).toEqual([])
    expect((await view(app, to)).subscriptions).toEqual(before)
  })

  test('to the user that has it changes nothing', async () => {
    const user = await aUser(app, { subscriptions: full() })
    const answer = await transfer(user.subscriptionIds[0], { external_id: user.externalId })
    expect(answer.status).toBe(200)
    expect((await view(app, user)).subscriptions).toHaveLength(20)
  })

  test.each([
    ['none', {}],
    ['two', { external_id: 'a', crm: 'b' }],
  ])('needs exactly one alias of the target: %s is a 400', async (_, identity) => {
    const { subscriptionIds } = await aNamelessUser(app)
    expect(told(await transfer(subscriptionIds[0], identity))).toEqual(
      problem(400, 'request-0', 'identity must hold exactly one alias of the user to transfer to'),
    )
  })

  test('to nobody is a 404 and it stays; of nothing is a 404', async () => {
    const from = await aNamelessUser(app)
    const to = await aUser(app)
    expect(told(await transfer(from.subscriptionIds[0], { external_id: aName() }))).toEqual(USER_NOT_FOUND)
    expect((await view(app, from)).subscriptions).toHaveLength(1)
    expect(told(await transfer(NOBODY, { external_id: to.externalId }))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await transfer('x', { external_id: to.externalId }))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { subscription_id: 'x' }),
    )
  })

  test('to a full user is a 409 and it stays', async () => {
    const from = await aNamelessUser(app)
    const to = await aUser(app, { subscriptions: full() })
    expect(told(await transfer(from.subscriptionIds[0], { external_id: to.externalId }))).toEqual(FULL)
    expect((await view(app, from)).subscriptions).toHaveLength(1)
  })

  test('stays inside the app', async () => {
    const { subscriptionIds } = await aNamelessUser(app)
    const tenant = await app.anotherTenant()
    const headers = { authorization: `Key ${tenant.key}` }
    await app.request(`/apps/${tenant.id}/users`, { headers, body: { identity: { external_id: 'x' } } })
    const answer = await app.request(`/apps/${tenant.id}/subscriptions/${subscriptionIds[0]}/owner`, {
      method: 'PATCH',
      headers,
      body: { identity: { external_id: 'x' } },
    })
    expect(told(answer)).toEqual(SUBSCRIPTION_NOT_FOUND)
  })
})
