// What holds for all operations holds for messages too: keys, shapes of errors, both prefixes.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { issueKey } from '../../src/apps/keys/keys.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../app.ts'
import { saying } from '../messages.ts'
import { startUnreachable } from '../unreachable.ts'
import { NOBODY, problem, told } from '../users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const everybody = saying({ included_segments: ['Subscribed Users'] })
const operations = [
  { name: 'Create message', method: 'POST', path: () => '/notifications', hasBody: true },
  { name: 'View messages', method: 'GET', path: (appId: string) => `/notifications?app_id=${appId}` },
  { name: 'View message', method: 'GET', path: (appId: string) => `/notifications/${NOBODY}?app_id=${appId}` },
  { name: 'Cancel message', method: 'DELETE', path: (appId: string) => `/notifications/${NOBODY}?app_id=${appId}` },
]
type Operation = (typeof operations)[number]

const ask = ({ method, path, hasBody }: Operation, authorization: string, appId: string = app.tenant.id, prefix = '') =>
  app.request(`${prefix}${path(appId)}`, {
    method,
    headers: { authorization },
    ...(hasBody && { body: { app_id: appId, ...everybody } }),
  })

describe('keys', () => {
  test.each(operations)('$name without one is an auth-1', async (operation) => {
    expect(told(await ask(operation, ''))).toEqual(
      problem(401, 'auth-1', "This operation requires 'Authorization' in the HTTP header"),
    )
  })

  test.each(operations)('$name with a key that is no good, or may not', async (operation) => {
    expect(await ask(operation, 'Key nonsense')).toMatchObject({
      status: 401,
      body: {
        errors: [expect.stringContaining('Access denied.'), expect.stringContaining('/docs/accounts-and-keys')],
        reference: [expect.any(String)],
      },
    })
    const ctx = { db: app.db, clock: systemClock() }
    const limited = { name: 'users alone', permissions: ['users' as const] }
    const { key } = await issueKey(ctx, { kind: 'app', appId: app.tenant.id }, limited, SYSTEM)
    const refused = await ask(operation, `Key ${key}`)
    expect(told(refused)).toEqual({ status: 403, body: { errors: [expect.any(String)] } })
  })

  test.each(operations)('$name: an app of somebody else looks like one that is not there', async (operation) => {
    const other = await app.anotherTenant()
    const missing = { status: 404, body: { errors: ['App not found'] } }
    expect(told(await ask(operation, `Key ${app.tenant.key}`, other.id))).toEqual(missing)
    expect(told(await ask(operation, `Key ${app.tenant.key}`, NOBODY))).toEqual(missing)
  })

  test.each(operations)('$name takes the key after Basic too, under both prefixes', async (operation) => {
    for (const scheme of ['Key', 'key', 'Basic'])
      for (const prefix of ['', '/api/v1']) {
        const { status } = await ask(operation, `${scheme} ${app.tenant.key}`, app.tenant.id, prefix)
        expect(status).toBe(operation.path(NOBODY).startsWith(`/notifications/${NOBODY}`) ? 404 : 200)
      }
  })
})

describe('service unavailable', () => {
  let unreachable: Awaited<ReturnType<typeof startUnreachable>>
  beforeAll(async () => {
    unreachable = await startUnreachable()
  })
  afterAll(() => unreachable.close())

  test.each(operations)('$name answers 503 while the database is not there', async ({ method, path, hasBody }) => {
    const response = await fetch(`${unreachable.address}${path(NOBODY)}`, {
      method,
      headers: { authorization: `Key ${'k'.repeat(40)}`, 'content-type': 'application/json' },
      ...(hasBody && { body: JSON.stringify({ app_id: NOBODY, ...everybody }) }),
    })
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 503,
      body: { errors: ['Service temporarily unavailable'] },
    })
  })
})
