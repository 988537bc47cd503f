import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { startUnreachable } from '../unreachable.ts'
import { aName, aUser, NOBODY, problem, told } from '../users.ts'
import { operations, requestOf } from './operations.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const TITLED = { code: expect.stringMatching(/./), title: expect.stringMatching(/./) }
const withBody = operations.filter(({ body }) => body)
const key = () => ({ authorization: `Key ${app.tenant.key}` })

/** The three shapes, and nothing else in the body. */
function expectShape(body: Record<string, unknown>, family: 'users' | 'legacy') {
  const { errors, ...rest } = body as { errors: unknown[] }
  expect(errors.length).toBeGreaterThan(0)
  if (family === 'legacy') {
    for (const error of errors) expect(error).toEqual(expect.stringMatching(/./))
    expect(rest).toEqual({ success: false })
  } else {
    for (const error of errors as { meta?: unknown }[]) {
      const { meta, ...named } = error
      expect(named).toEqual(TITLED)
      if ('meta' in error) expect(meta).toBeTypeOf('object')
    }
    expect(rest).toEqual({})
  }
}

describe('every answer is JSON with a Content-Type', () => {
  test.each(operations)('$name, of nobody', async (operation) => {
    const answer = await app.request(operation.path(app.tenant.id), requestOf(operation, app.tenant.id, key()))
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.body).toBeTypeOf('object')
    if (answer.status >= 400) expectShape(answer.body, operation.family)
  })

  test.each(withBody)('$name, with a body that is not JSON', async ({ method, path, family }) => {
    const answer = await app.request(path(app.tenant.id), { method, raw: '{"app_id":', headers: key() })
    expect(answer.status).toBe(400)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expectShape(answer.body, family)
  })

  test.each(withBody)('$name, with a body that is a list', async ({ method, path, family }) => {
    const answer = await app.request(path(app.tenant.id), { method, body: [], headers: key() })
    expect(answer.status).toBe(400)
    expectShape(answer.body, family)
  })

  test.each(withBody)('$name, with a body of another type', async (operation) => {
    const { method, path, body, family } = operation
    const answer = await app.request(path(app.tenant.id), {
      method,
      raw: JSON.stringify(body?.(app.tenant.id)),
      headers: { ...key(), 'content-type': 'text/plain' },
    })
    expect(answer.status).toBe(family === 'legacy' ? 400 : 415)
    expectShape(answer.body, family)
  })

  test.each([
    ['an unknown path', '/nowhere', 'GET', 404],
    ['an unknown path of an app', `/apps/${NOBODY}/nowhere`, 'GET', 404],
    ['a method that is not there', `/apps/${NOBODY}/users`, 'GET', 405],
    ['a path that is not encoded', '/apps/%ff/users', 'POST', 400],
  ])('%s', async (_, path, method, status) => {
    const answer = await app.request(path, { method })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.body).toEqual({ errors: [expect.stringMatching(/./)] })
  })
})

describe('an invalid UUID is a request-1 whose meta names the field', () => {
  const ofUsers = operations.filter(({ family }) => family === 'users')
  test.each(ofUsers)('the app of $name', async (operation) => {
    const answer = await app.request(operation.path('not-an-id'), requestOf(operation, 'not-an-id', key()))
    expect(told(answer)).toEqual(problem(400, 'request-1', 'Invalid UUID', { app_id: 'not-an-id' }))
  })

  test.each(ofUsers.filter(({ shape }) => shape.includes('{alias_id}')))('the user of $name', async (operation) => {
    const path = operation.path(app.tenant.id).replace(NOBODY, '123')
    const answer = await app.request(path, requestOf(operation, app.tenant.id, key()))
    expect(told(answer)).toEqual(problem(400, 'request-1', 'Invalid UUID', { onesignal_id: '123' }))
  })

  test.each(ofUsers.filter(({ shape }) => shape.includes('{subscription_id}')))(
    'the subscription of $name',
    async (operation) => {
      const path = operation.path(app.tenant.id).replace(NOBODY, '123')
      const answer = await app.request(path, requestOf(operation, app.tenant.id, key()))
      expect(told(answer)).toEqual(problem(400, 'request-1', 'Invalid UUID', { subscription_id: '123' }))
    },
  )

  test.each(operations.filter(({ family, shape }) => family === 'legacy' && !shape.includes('{app_id}')))(
    'the app of $name is told as text',
    async (operation) => {
      const answer = await app.request(operation.path('not-an-id'), requestOf(operation, 'not-an-id', key()))
      expect(told(answer)).toEqual({ status: 400, body: { success: false, errors: ['app_id must be a UUID'] } })
    },
  )

  test('a UUID of any version addresses; one that is not there is a 404', async () => {
    const answer = await app.app('/users/by/onesignal_id/6ba7b810-9dad-11d1-80b4-00c04fd430c8')
    expect(told(answer)).toEqual(problem(404, 'user-0', 'User not found'))
  })
})

describe('known codes', () => {
  test('user-2 is a 409 with the alias map in meta', async () => {
    const holder = await aUser(app)
    const user = await aUser(app)
    const answer = await app.app(`${user.path}/identity`, {
      method: 'PATCH',
      body: { identity: { external_id: holder.externalId } },
    })
    expect(told(answer)).toEqual(
      problem(409, 'user-2', 'One or more Aliases claimed by another User', { external_id: holder.externalId }),
    )
  })

  test('Create user answers two bodies with meta: aliases of several users, and too many subscriptions', async () => {
    const [left, right] = [await aUser(app), await aUser(app, { identity: { crm: aName() } })]
    const { crm } = (await app.app(right.path)).body.identity
    const several = await app.app('/users', { body: { identity: { external_id: left.externalId, crm } } })
    expect(several.body.errors[0].meta).toEqual({
      external_id: left.externalId,
      crm,
      conflicting_aliases: { external_id: left.externalId, crm },
    })
    const subscriptions = Array.from({ length: 21 }, () => ({ type: 'AndroidPush', token: aName() }))
    const tooMany = await app.app('/users', { body: { identity: { external_id: aName() }, subscriptions } })
    expect(tooMany).toMatchObject({
      status: 409,
      body: { errors: [{ code: 'Subscription Limit Exceeded', meta: { limit: 20 } }] },
    })
  })

  test('only errors of a key carry documentation paths', async () => {
    const denied = await app.app('/users/by/external_id/x', { headers: { authorization: `Key ${'x'.repeat(40)}` } })
    expect(denied.body.reference).toEqual(['/docs/accounts-and-keys#section-keys-ids'])
    const others = [
      await app.app('/users/by/external_id/nobody'),
      await app.app('/users', { body: {} }),
      await app.app('/users', { headers: { authorization: '' }, body: {} }),
    ]
    for (const { body } of others) expect(body).not.toHaveProperty('reference')
  })
})

describe('service unavailable', () => {
  let unreachable: Awaited<ReturnType<typeof startUnreachable>>
  beforeAll(async () => {
    unreachable = await startUnreachable()
  })
  afterAll(() => unreachable.close())

  test.each(operations)('$name: 503, a list with one text', async (operation) => {
    const request = requestOf(operation, NOBODY, {})
    const response = await fetch(`${unreachable.address}${operation.path(NOBODY)}`, {
      method: operation.method,
      headers: { authorization: `Key ${'k'.repeat(40)}`, 'content-type': 'application/json' },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    })
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 503,
      body: { errors: ['Service temporarily unavailable'] },
    })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })
})
