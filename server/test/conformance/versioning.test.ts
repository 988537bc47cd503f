import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { aName, UUID_V4 } from '../users.ts'
import { operations, requestOf } from './operations.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

test('the list of operations that these tests go through is complete', async () => {
  const { body } = await app.request('/openapi.json')
  const described = Object.entries(body.paths as Record<string, Record<string, { tags?: string[] }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods)
        .filter(([, { tags = [] }]) =>
          tags.some((tag) => /^(Users|Identity|Subscriptions|Custom events|Players)/.test(tag)),
        )
        .map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  expect(operations.map(({ method, shape }) => `${method} ${shape}`).sort()).toEqual(described.sort())
})

describe('every operation is served without a version in the path and under /api/v1, with the same answer', () => {
  test.each(operations)('$name', async (operation) => {
    const headers = { authorization: `Key ${app.tenant.key}` }
    const path = operation.path(app.tenant.id)
    const request = requestOf(operation, app.tenant.id, headers)
    const plain = await app.request(path, request)
    const prefixed = await app.request(`/api/v1${path}`, request)
    expect(plain.body.errors).not.toEqual(['Not found'])
    if (plain.status === 404) expect(prefixed.body).toEqual(plain.body)
    // The second of two creates meets what the first one made.
    expect([plain.status, 202]).toContain(prefixed.status)
  })
})

test('what is made under one prefix is seen under the other', async () => {
  const external_id = aName()
  const made = await app.request(`/api/v1/apps/${app.tenant.id}/users`, { body: { identity: { external_id } } })
  expect(made.status).toBe(201)
  const seen = await app.request(`/apps/${app.tenant.id}/users/by/external_id/${external_id}`)
  expect(seen.body.identity).toEqual(made.body.identity)
})

test('other versions are not there', async () => {
  const body = { identity: { external_id: aName() } }
  for (const prefix of ['/v1', '/api', '/api/v2', '/api/v1/api/v1'])
    expect(await app.request(`${prefix}/apps/${app.tenant.id}/users`, { body })).toMatchObject({
      status: 404,
      body: { errors: ['Not found'] },
    })
})

test('the same external_id is the same user, whatever way and client it comes by', async () => {
  const external_id = aName()
  const made = await app.app('/users', { body: { identity: { external_id } } })
  await app.request('/api/v1/players', {
    headers: { authorization: `Basic ${app.tenant.key}` },
    body: { app_id: app.tenant.id, device_type: 1, identifier: aName(), external_user_id: external_id },
  })
  const sdk = await app.app('/users', {
    headers: { authorization: '', accept: 'application/vnd.onesignal.v1+json', 'sdk-version': 'onesignal/web/160000' },
    body: { identity: { external_id }, subscriptions: [{ type: 'ChromePush', token: aName() }] },
  })
  expect(sdk).toMatchObject({ status: 202, body: { identity: made.body.identity } })
  const seen = await app.app(`/users/by/external_id/${external_id}`)
  expect(seen.body.subscriptions).toHaveLength(2)
})

test('identifiers are UUID v4, answered in lower case', async () => {
  const { body } = await app.app('/users', {
    body: { identity: { external_id: aName() }, subscriptions: [{ type: 'AndroidPush', token: aName() }] },
  })
  expect(body.identity.onesignal_id).toMatch(UUID_V4)
  expect(body.subscriptions[0].id).toMatch(UUID_V4)
  expect(body.subscriptions[0].app_id).toMatch(UUID_V4)
  const shouted = await app.request(`/apps/${app.tenant.id.toUpperCase()}/users`, {
    body: { identity: { external_id: aName() }, subscriptions: [{ type: 'AndroidPush', token: aName() }] },
  })
  expect(shouted).toMatchObject({ status: 201, body: { subscriptions: [{ app_id: app.tenant.id }] } })
})
