import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aName, anEmail, anId, aUser, NOBODY, problem, told, USER_NOT_FOUND } from '../../test/users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const remove = (path: string) => app.app(path, { method: 'DELETE' })
const count = async (table: string, id: string) => {
  const query = { text: `select count(*) as n from ${table} where user_id = $1`, values: [id] }
  return Number((await app.db.query<{ n: number }>(query))[0]?.n)
}

describe('delete user', () => {
  test('answers 202 with the id, and the user is gone with all it had', async () => {
    const user = await aUser(app, {
      identity: { crm: aName() },
      properties: { purchases: [{ sku: 'a', iso: 'USD', amount: '1', count: 1 }], last_active: 1_700_000_000 },
      subscriptions: [{ type: 'Email', token: anEmail(), session_count: 1 }],
    })
    expect(told(await remove(`/users/by/external_id/${user.externalId}`))).toEqual({
      status: 202,
      body: { identity: { onesignal_id: user.id } },
    })
    expect(told(await app.app(user.path))).toEqual(USER_NOT_FOUND)
    expect((await app.app(`/subscriptions/${user.subscriptionIds[0]}/user/identity`)).status).toBe(404)
    for (const table of ['aliases', 'subscriptions', 'purchases', 'user_activity'])
      expect(await count(table, user.id)).toBe(0)
  })

  test('frees its aliases and tokens: the same create makes somebody new', async () => {
    const body = {
      identity: { external_id: aName(), crm: aName() },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    }
    const first = await aUser(app, body)
    await remove(first.path)
    const again = await app.app('/users', { body })
    expect(again.status).toBe(201)
    expect(again.body.identity).toEqual({ onesignal_id: anId(), ...body.identity })
    expect(again.body.identity.onesignal_id).not.toBe(first.id)
    expect(again.body.subscriptions[0].id).not.toBe(first.subscriptionIds[0])
    expect(again.body.properties.tags).toEqual({})
  })

  test('frees its aliases for other users', async () => {
    const user = await aUser(app, { identity: { crm: aName() } })
    const { crm } = (await app.app(user.path)).body.identity
    await remove(user.path)
    const other = await aUser(app)
    const answer = await app.app(`${other.path}/identity`, {
      method: 'PATCH',
      body: { identity: { external_id: user.externalId, crm } },
    })
    expect(answer.status).toBe(200)
  })

  test('a second time, or of nobody, is a 404; of a malformed id a 400', async () => {
    const user = await aUser(app)
    expect((await remove(user.path)).status).toBe(202)
    expect(told(await remove(user.path))).toEqual(USER_NOT_FOUND)
    expect(told(await remove(`/users/by/onesignal_id/${NOBODY}`))).toEqual(USER_NOT_FOUND)
    expect(told(await remove('/users/by/onesignal_id/x'))).toEqual(
      problem(400, 'request-1', 'Invalid UUID', { onesignal_id: 'x' }),
    )
  })

  test('leaves the users of another app alone', async () => {
    const user = await aUser(app)
    const tenant = await app.anotherTenant()
    const answer = await app.request(`/apps/${tenant.id}${user.path}`, {
      method: 'DELETE',
      headers: { authorization: `Key ${tenant.key}` },
    })
    expect(told(answer)).toEqual(USER_NOT_FOUND)
    expect((await app.app(user.path)).status).toBe(200)
  })

  test('is noted, without personal data', async () => {
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    await remove(user.path)
    const notes = await app.db.query({
      text: `select actor_kind, action, target_type, target_id, detail from audit_log where target_id = $1`,
      values: [user.id],
    })
    expect(notes).toEqual([
      { actorKind: 'key', action: 'user.delete', targetType: 'user', targetId: user.id, detail: {} },
    ])
  })
})
