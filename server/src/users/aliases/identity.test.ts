import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aName,
  aNamelessUser,
  anEmail,
  aUser,
  NOBODY,
  plainSubscription,
  problem,
  SUBSCRIPTION_NOT_FOUND,
  told,
  USER_NOT_FOUND,
} from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock: virtualClock('2030-01-01T09:00:00Z') })
})
afterAll(() => app.close())

describe('view user identity', () => {
  test('answers all aliases and nothing else', async () => {
    const aliases = { external_id: aName(), crm: aName(), shop: aName() }
    const user = await aUser(app, {
      identity: aliases,
      properties: { tags: { a: '1' } },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    const expected = { status: 200, body: { identity: { onesignal_id: user.id, ...aliases } } }
    for (const path of [
      user.path,
      `/users/by/onesignal_id/${user.id.toUpperCase()}`,
      `/users/by/external_id/${aliases.external_id}`,
      `/users/by/crm/${aliases.crm}`,
    ])
      expect(told(await app.app(`${path}/identity`))).toEqual(expected)
  })

  test('of a user without aliases is its onesignal_id', async () => {
    const user = await aNamelessUser(app)
    expect(told(await app.app(`${user.path}/identity`))).toEqual({
      status: 200,
      body: { identity: { onesignal_id: user.id } },
    })
  })

  test.each(['a/b', 'a b', '100%', 'ключ', '🔔', 'a?b#c', '...', 'a+b', "it's"])(
    'a label and a value may hold %j, encoded in the path',
    async (odd) => {
      const label = `${odd}${aName()}`
      const user = await aUser(app, { identity: { [label]: odd } })
      const answer = await app.app(`/users/by/${encodeURIComponent(label)}/${encodeURIComponent(odd)}/identity`)
      expect(answer.body).toEqual({ identity: { onesignal_id: user.id, external_id: user.externalId, [label]: odd } })
    },
  )

  test('values are compared to the letter', async () => {
    const user = await aUser(app, { identity: { external_id: aName('Case') } })
    expect((await app.app(`/users/by/external_id/${user.externalId.toLowerCase()}/identity`)).status).toBe(404)
  })

  test('of an unknown user is a 404, a malformed onesignal_id a 400', async () => {
    expect(told(await app.app(`/users/by/external_id/${aName()}/identity`))).toEqual(USER_NOT_FOUND)
    expect(told(await app.app(`/users/by/onesignal_id/${NOBODY}/identity`))).toEqual(USER_NOT_FOUND)
    expect(told(await app.app('/users/by/onesignal_id/123/identity'))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: '123' }),
    )
  })

  test('does not see users of another app', async () => {
    const user = await aUser(app)
    const tenant = await app.anotherTenant()
    const headers = { authorization: `Key ${tenant.key}` }
    for (const path of [user.path, `/users/by/external_id/${user.externalId}`])
      expect(told(await app.request(`/apps/${tenant.id}${path}/identity`, { headers }))).toEqual(USER_NOT_FOUND)
  })
})

describe('view user identity by subscription', () => {
  const bySubscription = (id: string | undefined) => app.app(`/subscriptions/${id}/user/identity`)

  test('answers the identity of its user, and of its new user after a transfer', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    const [id] = user.subscriptionIds
    const identity = { onesignal_id: user.id, external_id: user.externalId }
    expect(told(await bySubscription(id))).toEqual({ status: 200, body: { identity } })
    const other = await aUser(app)
    await app.app(`/subscriptions/${id}/owner`, {
      method: 'PATCH',
      body: { identity: { external_id: other.externalId } },
    })
    expect((await bySubscription(id?.toUpperCase())).body.identity.onesignal_id).toBe(other.id)
  })

  test('an unknown subscription is a 404, a malformed id a 400', async () => {
    expect(told(await bySubscription(NOBODY))).toEqual(SUBSCRIPTION_NOT_FOUND)
    expect(told(await bySubscription('x'))).toEqual(problem(400, 'request-1', 'Invalid UUID', { subscription_id: 'x' }))
  })
})

describe('view user', () => {
  test('answers identity, properties and subscriptions', async () => {
    const [email, token] = [anEmail(), aName()]
    const user = await aUser(app, {
      identity: { crm: aName('crm') },
      properties: { tags: { a: '1' }, language: 'en' },
      subscriptions: [
        { type: 'Email', token: email },
        { type: 'AndroidPush', token },
      ],
    })
    await app.app(user.path, { method: 'PATCH', body: { deltas: { session_time: 90, session_count: 3 } } })
    const { status, body } = await app.app(`/users/by/external_id/${user.externalId}`)
    expect(status).toBe(200)
    const at = Date.parse('2030-01-01T09:00:00Z') / 1000
    expect(body).toEqual({
      identity: { onesignal_id: user.id, external_id: user.externalId, crm: expect.stringMatching(/^crm/) },
      properties: {
        tags: { a: '1' },
        language: 'en',
        first_active: at,
        last_active: at,
        session_time: 90,
        session_count: 3,
        amount_spent: 0,
        purchases: [],
      },
      subscriptions: expect.arrayContaining([
        plainSubscription(app, { type: 'Email', token: email }),
        plainSubscription(app, { type: 'AndroidPush', token }),
      ]),
    })
    expect(body.subscriptions).toHaveLength(2)
  })

  test('that is unknown is a 404, a malformed onesignal_id a 400', async () => {
    expect(told(await app.app(`/users/by/external_id/${aName()}`))).toEqual(USER_NOT_FOUND)
    expect(told(await app.app(`/users/by/crm/${'x'.repeat(5000)}`))).toEqual(USER_NOT_FOUND)
    expect(told(await app.app('/users/by/onesignal_id/123'))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: '123' }),
    )
  })
})
