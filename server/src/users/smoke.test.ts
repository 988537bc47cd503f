import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

test('a user is created, seen and changed', async () => {
  const created = await app.app('/users', {
    body: { identity: { external_id: 'a' }, subscriptions: [{ type: 'Email', token: 'a@b.co' }] },
  })
  expect(created.status).toBe(201)
  const again = await app.app('/users', { body: { identity: { external_id: 'a' }, properties: { tags: { x: 'y' } } } })
  expect(again.status).toBe(202)
  const seen = await app.app('/users/by/external_id/a')
  expect(seen).toMatchObject({ status: 200, body: { properties: { tags: { x: 'y' } } } })
  expect(await app.app('/users/by/external_id/b')).toMatchObject({
    status: 404,
    body: { errors: [{ code: 'user-0' }] },
  })
  const player = await app.request('/api/v1/players', {
    body: { app_id: app.tenant.id, device_type: 1, identifier: 't' },
  })
  expect(player).toMatchObject({ status: 200, body: { success: true } })
})
