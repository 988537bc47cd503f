// The published client, unmodified, against this server: what its users' programs see.

import * as OneSignal from '@onesignal/node-onesignal'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { aName, anEmail, anId, aPhone, NOBODY } from '../users.ts'

let app: TestApp
let client: OneSignal.DefaultApi
let appId: string
const clientFor = (restApiKey: string, base = app.url) =>
  new OneSignal.DefaultApi(
    OneSignal.createConfiguration({ restApiKey, baseServer: new OneSignal.ServerConfiguration(base, {}) }),
  )
beforeAll(async () => {
  app = await testApp()
  appId = app.tenant.id
  client = clientFor(app.tenant.key)
})
afterAll(() => app.close())

const CONFLICT = 'One or more Aliases claimed by another User'

async function failure(
  call: Promise<unknown>,
): Promise<OneSignal.ApiException<{ errors: { code: string; meta: object }[] }>> {
  const error = await call.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(OneSignal.ApiException)
  return error
}
const expectFailure = async (call: Promise<unknown>, code: number, ...messages: string[]) => {
  const error = await failure(call)
  expect({ code: error.code, errorMessages: error.errorMessages }).toEqual({ code, errorMessages: messages })
  return error
}

async function aUser(body: Partial<OneSignal.User> = {}) {
  const external_id = aName()
  const user = await client.createUser(appId, { ...body, identity: { external_id, ...body.identity } })
  return {
    external_id,
    id: user.identity?.onesignal_id as string,
    subscriptionIds: (user.subscriptions ?? []).map(({ id }) => id as string),
  }
}

describe('users', () => {
  test('createUser makes a user', async () => {
    const external_id = aName()
    const token = anEmail()
    const user = await client.createUser(appId, {
      identity: { external_id },
      properties: { tags: { plan: 'gold' }, language: 'en' },
      subscriptions: [
        { type: 'Email', token },
        { type: 'SMS', token: aPhone() },
      ],
    })
    expect(user.identity).toEqual({ onesignal_id: anId(), external_id })
    expect(user.properties).toMatchObject({ tags: { plan: 'gold' }, language: 'en' })
    expect(user.subscriptions).toMatchObject([{ id: anId(), type: 'Email', token, enabled: true }, { type: 'SMS' }])
  })

  test('createUser changes one that is there', async () => {
    const { id, external_id } = await aUser()
    const again = await client.createUser(appId, { identity: { external_id }, properties: { tags: { a: '1' } } })
    expect(again.identity?.onesignal_id).toBe(id)
  })

  test('getUser reads it', async () => {
    const { id, external_id, subscriptionIds } = await aUser({ subscriptions: [{ type: 'Email', token: anEmail() }] })
    const user = await client.getUser(appId, 'external_id', external_id)
    expect(user.identity).toEqual({ onesignal_id: id, external_id })
    expect(user.subscriptions?.map((it) => it.id)).toEqual(subscriptionIds)
    expect(user.properties).toMatchObject({ tags: {}, purchases: [] })
  })

  test('updateUser changes properties and adds deltas', async () => {
    const { external_id } = await aUser({ properties: { tags: { a: '1', b: '2' } } })
    const { properties } = await client.updateUser(appId, 'external_id', external_id, {
      properties: { tags: { a: '', c: '3' }, timezone_id: 'Europe/Paris' },
      deltas: { session_count: 1, session_time: 30, purchases: [{ sku: 'A', iso: 'USD', amount: '1.50', count: 2 }] },
    })
    expect(properties).toMatchObject({
      tags: { b: '2', c: '3' },
      timezone_id: 'Europe/Paris',
      amount_spent: 3,
      purchases: [{ sku: 'A', iso: 'USD', amount: '1.50', count: 2 }],
    })
  })

  test('deleteUser removes it', async () => {
    const { external_id } = await aUser()
    await client.deleteUser(appId, 'external_id', external_id)
    await expectFailure(client.getUser(appId, 'external_id', external_id), 404, 'User not found')
    await expectFailure(client.deleteUser(appId, 'external_id', external_id), 404, 'User not found')
  })

  test.each(['a/b', 'with space', 'ключ', '漢字 🔔', '50%25', 'a?b=c&d#e', 'a+b', 'quote\'"', 'user@example.com'])(
    'a label and a value %j go through the path',
    async (odd) => {
      const label = `${odd} ${aName()}`
      const { id } = await aUser({ identity: { [label]: odd } })
      const { identity } = await client.getUser(appId, label, odd)
      expect(identity).toMatchObject({ onesignal_id: id, [label]: odd })
      const { properties } = await client.updateUser(appId, label, odd, { properties: { tags: { x: 'y' } } })
      expect(properties?.tags).toEqual({ x: 'y' })
    },
  )

  test('createUser over two users is a 409 whose conflicting aliases are typed', async () => {
    const [left, right] = [await aUser(), await aUser({ identity: { crm: aName() } })]
    const { identity = {} } = await client.getAliases(appId, 'external_id', right.external_id)
    const labels = { external_id: left.external_id, crm: identity.crm as string }
    const error = await expectFailure(client.createUser(appId, { identity: labels }), 409, CONFLICT)
    expect(error.body.errors[0]).toMatchObject({ code: 'user-2', meta: { conflicting_aliases: labels } })
  })

  test('errors come as ApiException with their messages', async () => {
    await expectFailure(client.getUser(appId, 'onesignal_id', 'x'), 400, 'Invalid UUID')
    await expectFailure(
      client.createUser(appId, {}),
      400,
      'a user needs an identity with at least one alias, or at least one subscription',
    )
    await expectFailure(client.updateUser(appId, 'external_id', aName(), {}), 404, 'User not found')
    await expectFailure(client.getUser(NOBODY, 'external_id', 'x'), 404, 'App not found')
    const { external_id } = await aUser()
    await expectFailure(
      client.updateUser(appId, 'external_id', external_id, { properties: { language: 'nonsense!' } }),
      400,
      'language "nonsense!" is not a language code',
    )
  })

  test('a bad key has the text that the client knows', async () => {
    const error = await failure(clientFor('x'.repeat(40)).getUser(appId, 'external_id', 'x'))
    expect(error.code).toBe(401)
    expect(error.errorMessages).toEqual([
      OneSignal.OneSignalErrors.INVALID_API_KEY,
      expect.stringContaining('/docs/accounts-and-keys'),
    ])
  })

  test('the old base address works as well', async () => {
    const { id, external_id } = await aUser()
    const user = await clientFor(app.tenant.key, `${app.url}/api/v1`).getUser(appId, 'external_id', external_id)
    expect(user.identity?.onesignal_id).toBe(id)
  })
})

describe('aliases', () => {
  test('getAliases, createAlias and deleteAlias', async () => {
    const { id, external_id } = await aUser()
    const crm = aName('a b/c')
    expect(await client.createAlias(appId, 'external_id', external_id, { identity: { crm } })).toEqual({
      identity: { onesignal_id: id, external_id, crm },
    })
    expect(await client.getAliases(appId, 'crm', crm)).toEqual({ identity: { onesignal_id: id, external_id, crm } })
    expect(await client.deleteAlias(appId, 'crm', crm, 'crm')).toEqual({ identity: { onesignal_id: id, external_id } })
    await expectFailure(client.getAliases(appId, 'crm', crm), 404, 'User not found')
    await expectFailure(client.deleteAlias(appId, 'external_id', external_id, 'crm'), 404, 'Alias not found')
    await expectFailure(
      client.deleteAlias(appId, 'external_id', external_id, 'onesignal_id'),
      400,
      'onesignal_id cannot be removed',
    )
  })

  test('createAlias of a pair that another user holds is a 409', async () => {
    const [left, right] = [await aUser(), await aUser()]
    await expectFailure(
      client.createAlias(appId, 'external_id', left.external_id, { identity: { external_id: right.external_id } }),
      409,
      CONFLICT,
    )
    await expectFailure(
      client.createAlias(appId, 'external_id', aName(), { identity: { crm: aName() } }),
      404,
      'User not found',
    )
  })

  test('getAliasesBySubscription and createAliasBySubscription', async () => {
    const { id, external_id, subscriptionIds } = await aUser({ subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [subscriptionId] = subscriptionIds as [string]
    const identity = { onesignal_id: id, external_id }
    expect(await client.getAliasesBySubscription(appId, subscriptionId)).toEqual({ identity })
    const crm = aName()
    expect(await client.createAliasBySubscription(appId, subscriptionId, { identity: { crm } })).toEqual({
      identity: { ...identity, crm },
    })
    await expectFailure(client.getAliasesBySubscription(appId, NOBODY), 404, 'Subscription not found')
    const other = await aUser()
    await expectFailure(
      client.createAliasBySubscription(appId, subscriptionId, { identity: { external_id: other.external_id } }),
      409,
      CONFLICT,
    )
  })
})

describe('subscriptions', () => {
  test('createSubscription makes one, and finds one that is there', async () => {
    const { external_id } = await aUser()
    const draft = { subscription: { type: 'Email' as const, token: anEmail() } }
    const made = await client.createSubscription(appId, 'external_id', external_id, draft)
    expect(made.subscription).toMatchObject({ id: anId(), ...draft.subscription, enabled: true, notification_types: 1 })
    const again = await client.createSubscription(appId, 'external_id', external_id, draft)
    expect(again.subscription?.id).toBe(made.subscription?.id)
  })

  test('createSubscription tells what is wrong', async () => {
    const { external_id } = await aUser({
      subscriptions: Array.from({ length: 20 }, () => ({ type: 'Email' as const, token: anEmail() })),
    })
    const draft = { subscription: { type: 'SMS' as const, token: aPhone() } }
    await expectFailure(
      client.createSubscription(appId, 'external_id', external_id, draft),
      409,
      'A user can have at most 20 subscriptions',
    )
    await expectFailure(client.createSubscription(appId, 'external_id', aName(), draft), 404, 'User not found')
    await expectFailure(
      client.createSubscription(appId, 'external_id', external_id, { subscription: { type: 'Email', token: 'x' } }),
      400,
      '"x" is not a valid email address',
    )
  })

  test('updateSubscription and updateSubscriptionByToken', async () => {
    const token = `https://push.example/a b/${aName()}`
    const { external_id, subscriptionIds } = await aUser({ subscriptions: [{ type: 'FirefoxPush', token }] })
    const [id] = subscriptionIds as [string]
    await client.updateSubscription(appId, id, { subscription: { enabled: false, device_os: '7' } })
    const seen = await client.getUser(appId, 'external_id', external_id)
    expect(seen.subscriptions).toMatchObject([{ id, enabled: false, notification_types: -31, device_os: '7' }])
    await client.updateSubscriptionByToken(appId, 'FirefoxPush', token, { subscription: { enabled: true } })
    const after = await client.getUser(appId, 'external_id', external_id)
    expect(after.subscriptions).toMatchObject([{ id, enabled: true, notification_types: 1 }])
    await expectFailure(client.updateSubscription(appId, NOBODY, { subscription: {} }), 404, 'Subscription not found')
    await expectFailure(
      client.updateSubscriptionByToken(appId, 'Email', anEmail(), { subscription: {} }),
      404,
      'Subscription not found',
    )
  })

  test('transferSubscription moves it', async () => {
    const from = await aUser({ subscriptions: [{ type: 'Email', token: anEmail() }] })
    const to = await aUser()
    const [id] = from.subscriptionIds as [string]
    const answer = await client.transferSubscription(appId, id, { identity: { external_id: to.external_id } })
    expect(answer).toEqual({ identity: { onesignal_id: to.id, external_id: to.external_id } })
    expect((await client.getAliasesBySubscription(appId, id)).identity?.onesignal_id).toBe(to.id)
    await expectFailure(
      client.transferSubscription(appId, id, { identity: { external_id: aName() } }),
      404,
      'User not found',
    )
    await expectFailure(
      client.transferSubscription(appId, id, { identity: {} }),
      400,
      'identity must hold exactly one alias of the user to transfer to',
    )
  })

  test('deleteSubscription removes it', async () => {
    const { external_id, subscriptionIds } = await aUser({ subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [id] = subscriptionIds as [string]
    await client.deleteSubscription(appId, id)
    expect((await client.getUser(appId, 'external_id', external_id)).subscriptions).toEqual([])
    await expectFailure(client.deleteSubscription(appId, id), 404, 'Subscription not found')
  })
})

describe('custom events', () => {
  test('createCustomEvents stores them, and tells which it did not', async () => {
    const { id, external_id } = await aUser()
    // Safely in the past: what lies in the future of the server is dated now, and its clock is not this one.
    const timestamp = new Date(Date.now() - 60_000).toISOString()
    const events = [
      { name: 'purchase', external_id, timestamp, payload: { item: 'bell', price: 9.5 } },
      { name: 'opened', onesignal_id: id },
    ]
    expect(await client.createCustomEvents(appId, { events })).toEqual({})
    const seen = (await app.app(`/users/by/onesignal_id/${id}/custom_events?name=purchase`)).body.events
    expect(seen).toMatchObject([{ name: 'purchase', timestamp, properties: { item: 'bell', price: 9.5 } }])
    const answer = await client.createCustomEvents(appId, { events: [{ name: 'opened', external_id: 'nobody' }] })
    expect(answer).toEqual({
      errors: [
        {
          event_user_id: 'nobody',
          event_id: null,
          error: { code: 'not found', title: 'User not found', meta: { index: 0 } },
        },
      ],
    })
  })

  test('createCustomEvents tells what is wrong', async () => {
    await expectFailure(client.createCustomEvents(appId, { events: [] }), 400, 'events must not be empty')
    await expectFailure(
      client.createCustomEvents(appId, { events: [{ name: 'x' }] }),
      400,
      'events[0] needs an external_id or a onesignal_id',
    )
    await expectFailure(client.createCustomEvents(NOBODY, { events: [{ name: 'x' }] }), 404, 'App not found')
  })
})

describe('limits', () => {
  let limited: TestApp
  beforeAll(async () => {
    limited = await testApp({ limits: 'spec', clock: virtualClock() })
  })
  afterAll(() => limited.close())

  test('a refused request is an ApiException with Retry-After', async () => {
    const { id } = limited.tenant
    const its = clientFor(limited.tenant.key, limited.url)
    await expectFailure(its.getAliases(id, 'external_id', 'x'), 404, 'User not found')
    const error = await expectFailure(its.getAliases(id, 'external_id', 'x'), 429, 'API rate limit exceeded')
    expect(error.headers['retry-after']).toBe('1')
  })
})
