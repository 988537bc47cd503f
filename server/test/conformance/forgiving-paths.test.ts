// Existing clients put slashes where none belong. They are ignored, and nothing but the right operation is found by it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { declaredRoutes } from '../../src/composition/declared-routes.ts'
import { createRouter } from '../../src/http/router.ts'
import { type TestApp, testApp } from '../app.ts'
import { aName } from '../users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

describe('slashes', () => {
  test('double ones and one at the end are ignored', async () => {
    const { id } = app.tenant
    const external_id = aName()
    const made = await app.request(`//apps/${id}//users/`, { body: { identity: { external_id } } })
    expect(made.status).toBe(201)
    for (const path of [
      `/apps/${id}/users/by/external_id/${external_id}/`,
      `/api/v1//apps/${id}/users/by/external_id/${external_id}`,
      `/api//v1/apps//${id}/users/by/external_id/${external_id}///`,
    ])
      expect(await app.request(path)).toMatchObject({ status: 200, body: { identity: { external_id } } })
    for (const path of ['/players/', '/api/v1//players/'])
      expect((await app.request(`${path}?app_id=${id}`)).status).toBe(200)
  })

  test('a key is judged for the app that the path means', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const own = await app.request(`//apps/${app.tenant.id}//users/by/external_id/x/`, { headers })
    expect(own).toMatchObject({ status: 404, body: { errors: [{ title: 'App not found' }] } })
    expect(
      (await app.request(`//apps/${app.tenant.id}/users/`, { headers: { authorization: '' }, body: {} })).status,
    ).toBe(401)
  })

  test('preflights and other methods are answered as without them', async () => {
    const preflight = await fetch(`${app.url}//apps/${app.tenant.id}/users/`, { method: 'OPTIONS' })
    expect(preflight.status).toBe(204)
    expect((await app.request('//notifications/', { method: 'PATCH' })).status).toBe(405)
  })

  test('an empty external id does not become another user’s', async () => {
    const external_id = 'identity'
    await app.app('/users', { body: { identity: { external_id } } })
    const answer = await app.app('/users/by/external_id//identity', { method: 'PATCH', body: { properties: {} } })
    expect(answer).toMatchObject({ status: 404, body: { errors: ['Not found'] } })
  })
})

test('a parameter left empty never leads to another operation, but from one of a list to the list', () => {
  const { domains, kit } = declaredRoutes()
  const routes = [...domains, ...kit]
  const router = createRouter<string>()
  for (const { method, path, operation } of routes) router.add(method, path, operation)
  const others: string[] = []
  for (const { method, path, operation } of routes) {
    const segments = path.split('/')
    const parameters = segments.flatMap((segment, i) => (segment.startsWith(':') ? [i] : []))
    for (let chosen = 1; chosen < 1 << parameters.length; chosen++) {
      const isEmpty = (i: number) => parameters.includes(i) && (chosen >> parameters.indexOf(i)) & 1
      const given = segments.map((segment, i) => (isEmpty(i) ? '' : segment.replace(':', 'a-')))
      const other = router.find(method, router.normalize(given.join('/')))?.value
      const isList = method === 'GET' && given.indexOf('', 1) === given.length - 1
      if (other !== undefined && !isList) others.push(`${operation}: ${other}`)
    }
  }
  // Postmark proves who it is by this secret or by a password.
  expect(others).toEqual(['takePostmarkEventsBySecret: takePostmarkEvents'])
})

describe('an app that is not named', () => {
  test('is the one of the key', async () => {
    const { body } = await app.request('/players', {
      body: { app_id: app.tenant.id, device_type: 1, identifier: aName() },
    })
    const path = `/players/${body.id}`
    expect(await app.request(path)).toMatchObject({ status: 200, body: { id: body.id, session_count: 0 } })
    const put = (path: string, body: object) => app.request(path, { method: 'PUT', body })
    expect((await put(path, { language: 'fr' })).status).toBe(200)
    expect((await app.request(`${path}/on_session`, { method: 'POST' })).status).toBe(200)
    expect((await app.request(`${path}/on_session`, { body: { app_id: '', game_version: '2' } })).status).toBe(200)
    const purchases = [{ sku: 'A', iso: 'USD', amount: '1.50' }]
    expect((await app.request(`${path}/on_purchase`, { body: { purchases } })).status).toBe(200)
    expect((await app.request(`${path}/on_focus`, { body: { app_id: null, active_time: 7 } })).status).toBe(200)
    expect((await put(`${path}/on_focus`, { active_time: 7 })).status).toBe(200)
    expect((await app.request(path)).body).toMatchObject({
      language: 'fr',
      game_version: '2',
      session_count: 2,
      amount_spent: 1.5,
      playtime: 14,
    })
  })

  test('is nobody’s for an organization key, and not found in another app', async () => {
    const { body } = await app.request('/players', {
      body: { app_id: app.tenant.id, device_type: 1, identifier: aName() },
    })
    const path = `/players/${body.id}`
    const as = (key: string) => app.request(path, { headers: { authorization: `Key ${key}` } })
    expect(await as(app.tenant.organizationKey)).toMatchObject({
      status: 400,
      body: { errors: ['app_id is required'] },
    })
    expect((await as((await app.anotherTenant()).key)).status).toBe(404)
    expect((await app.request(path, { headers: { authorization: '' } })).status).toBe(401)
  })
})
