// What an SDK with an identity token can do: all that concerns its own user, and nothing that belongs to somebody else.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Request, type TestApp, testApp } from '../../../test/app.ts'
import { createSigner, SDK } from '../../../test/sdk.ts'
import {
  aName,
  aNamelessUser,
  anEmail,
  aPhone,
  aUser,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  view,
} from '../../../test/users.ts'
import { SYSTEM } from '../../apps/app.ts'
import { setApp } from '../../apps/create.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'

const signer = createSigner()
let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
  const settings = { identityPublicKey: signer.publicKey, identityRequired: true }
  await setApp({ db: app.db, clock }, app.tenant.id, settings, SYSTEM)
})
afterAll(() => app.close())
beforeEach(() => {
  clock.advance({ minutes: 1 })
  clock.advanceLease({ minutes: 1 })
})

const headersOf = (externalId: string) => ({
  ...SDK,
  authorization: `Bearer ${signer.token(app.tenant.id, externalId, clock.now())}`,
})
const as =
  (externalId: string) =>
  (path: string, request: Request = {}) =>
    app.app(path, { ...request, headers: headersOf(externalId) })

const FORBIDDEN = problem(403, 'auth-3', 'The identity token is for another user')
const TAKEN = problem(409, 'subscription-1', 'Another subscription has this token')

describe('an external id', () => {
  test('that is not the one of the token is out of reach, taken or free', async () => {
    const me = await aUser(app)
    const victim = await aUser(app)
    const mine = as(me.externalId)
    for (const external_id of [victim.externalId, aName()]) {
      const identity = { external_id }
      expect(told(await mine('/users', { body: { identity } }))).toEqual(FORBIDDEN)
      for (const path of [me.path, victim.path])
        expect(told(await mine(`${path}/identity`, { method: 'PATCH', body: { identity } }))).toEqual(FORBIDDEN)
      expect(told(await mine(`/users/by/external_id/${external_id}`))).toEqual(FORBIDDEN)
    }
    expect((await view(app, me)).identity).toEqual({ onesignal_id: me.id, external_id: me.externalId })
  })

  test('names the user in the path, as mobile SDKs do with a token', async () => {
    const me = await aUser(app, { identity: { crm: aName() }, properties: { tags: { plan: 'gold' } } })
    const mine = as(me.externalId)
    const path = `/users/by/external_id/${me.externalId}`
    expect((await mine(path)).body).toMatchObject({ properties: { tags: { plan: 'gold' } } })
    const answers = [
      await mine(path, { method: 'PATCH', body: { properties: { tags: { theme: 'dark' } } } }),
      await mine(`${path}/identity`, { method: 'PATCH', body: { identity: { shop: aName() } } }),
      await mine(`${path}/identity/crm`, { method: 'DELETE' }),
      await mine(`${path}/subscriptions`, { body: { subscription: { type: 'Email', token: anEmail() } } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([202, 200, 200, 201])
  })

  test('is not believed where the app has no key to verify a token with', async () => {
    const { id, key } = await app.anotherTenant()
    const made = await app.request(`/apps/${id}/users`, {
      headers: { authorization: `Key ${key}` },
      body: { identity: { external_id: 'victim' }, properties: { tags: { plan: 'gold' } } },
    })
    expect(made.status).toBe(201)
    const headers = headersOf('victim')
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/identity'],
      ['DELETE', '/identity/external_id'],
    ] as const)
      expect((await app.request(`/apps/${id}/users/by/external_id/victim${rest}`, { method, headers })).status).toBe(
        401,
      )
  })

  test('may be given to the anonymous user that somebody has been so far', async () => {
    const nobody = await aNamelessUser(app, { type: 'AndroidPush', token: aName() })
    const external_id = aName()
    const claim = { method: 'PATCH', body: { identity: { external_id } } }
    expect(told(await as(external_id)(`${nobody.path}/identity`, claim))).toEqual({
      status: 200,
      body: { identity: { onesignal_id: nobody.id, external_id } },
    })
    expect(told(await as(aName())(nobody.path))).toEqual(FORBIDDEN)
  })

  test('is not given to an anonymous user with an address, which may have been made for somebody else’s', async () => {
    const nobody = await aNamelessUser(app)
    const external_id = aName()
    const claim = { method: 'PATCH', body: { identity: { external_id } } }
    expect(told(await as(external_id)(`${nobody.path}/identity`, claim))).toEqual(
      problem(409, 'user-2', 'One or more Aliases claimed by another User', { external_id }),
    )
    expect((await view(app, nobody)).identity).toEqual({ onesignal_id: nobody.id })
  })

  test('of somebody else is not told to be there by a transfer or a list', async () => {
    const me = await aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName() }] })
    const victim = await aUser(app, { identity: { crm: aName() } })
    const [id] = me.subscriptionIds
    const mine = as(me.externalId)
    for (const external_id of [victim.externalId, aName()]) {
      const transfer = { method: 'PATCH', body: { identity: { external_id } } }
      expect(told(await mine(`/subscriptions/${id}/owner`, transfer))).toEqual(FORBIDDEN)
      expect(told(await mine(`/users/by/external_id/${external_id}/subscriptions/${id}/iams`))).toEqual(FORBIDDEN)
    }
    const byAlias = { method: 'PATCH', body: { identity: { crm: aName() } } }
    expect(told(await mine(`/subscriptions/${id}/owner`, byAlias))).toEqual(FORBIDDEN)
  })

  test.each(['x'.repeat(129), 'a\0b'])('that cannot be one makes the token invalid', async (externalId) => {
    expect(await as(externalId)('/users', { body: { subscriptions: [] } })).toMatchObject({
      status: 401,
      body: { errors: [{ code: 'auth-4' }] },
    })
  })

  test('stands for the user where the body names none', async () => {
    const external_id = aName()
    const body = { subscriptions: [{ type: 'iOSPush', token: aName() }] }
    expect(await as(external_id)('/users', { body })).toMatchObject({
      status: 201,
      body: { identity: { external_id } },
    })
  })
})

test('an alias that somebody else has is refused by naming no more than what was asked for', async () => {
  const crm = aName()
  await aUser(app, { identity: { crm } })
  const me = aName()
  const body = { identity: { external_id: me, crm } }
  expect(told(await as(me)('/users', { body }))).toEqual(
    problem(409, 'user-2', 'One or more Aliases claimed by another User', { crm }),
  )
})

describe('what somebody else has', () => {
  /** With an address of each kind and a push token. */
  async function aVictim() {
    const [email, phone, push] = [anEmail(), aPhone(), aName('token')]
    const victim = await aUser(app, {
      subscriptions: [
        { type: 'Email', token: email },
        { type: 'SMS', token: phone },
        { type: 'iOSPush', token: push },
      ],
    })
    const before = await view(app, victim)
    const idOf = (token: string): string =>
      before.subscriptions.find((it: { token: string; id: string }) => it.token === token).id
    return { ...victim, email, phone, push, idOf, before }
  }

  test('is not moved by an address, however it is asked for', async () => {
    const victim = await aVictim()
    const me = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const mine = as(me.externalId)
    const own = me.subscriptionIds[0]
    for (const subscription of [
      { type: 'Email', token: victim.email },
      { type: 'Email', token: victim.email.toUpperCase(), enabled: false },
      { type: 'SMS', token: victim.phone },
    ]) {
      const identity = { external_id: me.externalId }
      expect(told(await mine('/users', { body: { identity, subscriptions: [subscription] } }))).toEqual(TAKEN)
      expect(told(await mine(`${me.path}/subscriptions`, { body: { subscription } }))).toEqual(TAKEN)
    }
    const repoint = { method: 'PATCH', body: { subscription: { token: victim.email } } }
    expect(told(await mine(`/subscriptions/${own}`, repoint))).toEqual(TAKEN)
    expect(await view(app, victim)).toEqual(victim.before)
  })

  test('is not there by its id', async () => {
    const victim = await aVictim()
    const me = await aUser(app)
    const mine = as(me.externalId)
    const identity = { external_id: me.externalId }
    for (const id of [victim.idOf(victim.email), victim.idOf(victim.phone), victim.idOf(victim.push)]) {
      const disable = { method: 'PATCH', body: { subscription: { enabled: false } } }
      const answers = [
        await mine(`/subscriptions/${id}/owner`, { method: 'PATCH', body: { identity } }),
        await mine(`/subscriptions/${id}`, disable),
        await mine(`/subscriptions/${id}`, { method: 'DELETE' }),
        await mine(`/subscriptions/${id}/user/identity`),
        await mine(`/subscriptions/${id}/iams`),
        await mine(`/subscriptions/${id}/user/identity`, { method: 'PATCH', body: { identity: { a: 'b' } } }),
        await mine('/users', { body: { identity, subscriptions: [{ id }] } }),
        await mine(`${me.path}/subscriptions`, { body: { subscription: { id } } }),
      ]
      for (const answer of answers) expect(told(answer)).toEqual(SUBSCRIPTION_NOT_FOUND)
    }
    expect(await view(app, victim)).toEqual(victim.before)
  })

  test('is moved by its push token, which only the device has', async () => {
    const victim = await aVictim()
    const me = await aUser(app)
    const id = victim.idOf(victim.push)
    const body = {
      identity: { external_id: me.externalId },
      subscriptions: [{ id, type: 'iOSPush', token: victim.push }],
    }
    expect(await as(me.externalId)('/users', { body })).toMatchObject({
      status: 202,
      body: { subscriptions: [{ id }] },
    })
    expect((await view(app, me)).subscriptions).toMatchObject([{ id, token: victim.push }])
  })

  test('is moved by its id while it is nobody’s', async () => {
    const nobody = await aNamelessUser(app, { type: 'ChromePush', token: aName() })
    const [id] = nobody.subscriptionIds
    const me = aName()
    const body = { identity: { external_id: me }, subscriptions: [{ id }] }
    expect(await as(me)('/users', { body })).toMatchObject({ status: 201, body: { subscriptions: [{ id }] } })
    const email = await aNamelessUser(app)
    const [address] = email.subscriptionIds
    const take = { identity: { external_id: me }, subscriptions: [{ id: address }] }
    expect(told(await as(me)('/users', { body: take }))).toEqual(SUBSCRIPTION_NOT_FOUND)
  })
})
