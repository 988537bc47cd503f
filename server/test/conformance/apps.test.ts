// What holds for every operation on apps, keys and the audit log: who may call it, what its errors look like, its limits.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type VirtualClock, virtualClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { type Tenant, type TestApp, testApp } from '../app.ts'
import { startUnreachable } from '../unreachable.ts'
import { NOBODY, told } from '../users.ts'

type Operation = {
  name: string
  method: string
  path: (tenant: Pick<Tenant, 'id' | 'organizationId'>) => string
  body?: object
}

const keys = ({ id }: { id: string }) => `/apps/${id}/auth/tokens`
const ofApps: Operation[] = [
  { name: 'Update an app', method: 'PUT', path: ({ id }) => `/apps/${id}`, body: { name: 'Shop' } },
  { name: 'View an app', method: 'GET', path: ({ id }) => `/apps/${id}` },
  { name: 'View API keys', method: 'GET', path: keys },
  { name: 'Create API key', method: 'POST', path: keys, body: { name: 'CI' } },
  { name: 'Update API key', method: 'PATCH', path: (tenant) => `${keys(tenant)}/${NOBODY}`, body: { name: 'CI' } },
  { name: 'Rotate API key', method: 'POST', path: (tenant) => `${keys(tenant)}/${NOBODY}/rotate` },
  { name: 'Delete API key', method: 'DELETE', path: (tenant) => `${keys(tenant)}/${NOBODY}` },
]
const operations: Operation[] = [
  ...ofApps,
  { name: 'View apps', method: 'GET', path: () => '/apps' },
  { name: 'Create an app', method: 'POST', path: () => '/apps', body: { name: 'Shop' } },
  {
    name: 'View audit logs',
    method: 'GET',
    path: ({ organizationId }) => `/organizations/${organizationId}/audit_logs?start_time=2030-01-01T00:00:00Z`,
  },
]

let app: TestApp
let clock: VirtualClock
function serverWith(limits: 'off' | 'spec') {
  beforeAll(async () => {
    clock = virtualClock('2030-01-01T09:00:00Z')
    app = await testApp({ limits, clock })
  })
  afterAll(() => app.close())
}
const ask = (
  { method, path, body }: Operation,
  authorization: string,
  tenant: Parameters<Operation['path']>[0] = app.tenant,
) => app.request(path(tenant), { method, headers: { authorization }, ...(body && { body }) })
const ours = () => `Key ${app.tenant.organizationKey}`

const DENIED =
  "Access denied.  Please include an 'Authorization: ...' header with a valid API key (https://documentation.onesignal.com/docs/en/keys-and-ids#api-keys)."
const OUR_PAGE = 'What this server takes for a key is explained at /docs/accounts-and-keys#section-keys-ids'

describe('who may', () => {
  serverWith('off')

  test('the list of operations that these tests go through is complete', async () => {
    const { body } = await app.request('/openapi.json')
    const described = Object.entries(body.paths as Record<string, Record<string, { tags?: string[] }>>).flatMap(
      ([path, methods]) =>
        Object.entries(methods)
          .filter(([, { tags = [] }]) => tags.some((tag) => ['Apps', 'API keys', 'Audit log'].includes(tag)))
          .map(([method]) => `${method.toUpperCase()} ${path}`),
    )
    const tested = operations.map(({ method, path }) => {
      const [shape] = path({ id: '{app_id}', organizationId: '{organization_id}' })
        .replace(NOBODY, '{token_id}')
        .split('?')
      return `${method} ${shape}`
    })
    expect(tested.sort()).toEqual(described.sort())
  })

  test.each(operations)('$name: an organization key, after Key, Basic or Bearer', async (operation) => {
    for (const scheme of ['Key', 'key', 'Basic', 'Bearer']) {
      const { status, body } = await ask(operation, `${scheme} ${app.tenant.organizationKey}`)
      expect([200, 404]).toContain(status)
      if (status === 404) expect(body).toEqual({ errors: ['Key not found'] })
    }
  })

  test.each(operations)('$name: not without a key', async (operation) => {
    expect(told(await ask(operation, ''))).toEqual({
      status: 401,
      body: { errors: [{ code: 'auth-1', title: "This operation requires 'Authorization' in the HTTP header" }] },
    })
  })

  test.each(operations)('$name: not with a key that is unknown', async (operation) => {
    const answer = await ask(operation, `${ours()}x`)
    expect(told(answer)).toEqual({
      status: 401,
      body: { errors: [DENIED, OUR_PAGE], reference: ['/docs/accounts-and-keys#section-keys-ids'] },
    })
  })

  test.each(operations)('$name: permission denied with a key of the app', async (operation) => {
    expect(told(await ask(operation, `Key ${app.tenant.key}`))).toEqual({
      status: 403,
      body: { errors: ['This operation needs an organization key'] },
    })
  })

  test.each(ofApps)('$name: an app of another organization looks like one that is not there', async (operation) => {
    const other = await app.anotherTenant()
    const missing = await ask(operation, ours(), { ...app.tenant, id: newId() })
    expect(told(missing)).toEqual({ status: 404, body: { errors: ['App not found'] } })
    expect(told(await ask(operation, ours(), other))).toEqual(told(missing))
    expect(told(await ask(operation, `Key ${other.organizationKey}`))).toEqual(told(missing))
  })

  test.each(ofApps)('$name: an id that is no UUID is a 400, told as text', async (operation) => {
    expect(told(await ask(operation, ours(), { ...app.tenant, id: 'shop' }))).toEqual({
      status: 400,
      body: { errors: ['app_id must be a UUID'] },
    })
  })

  test.each(operations.filter(({ body }) => body))('$name: takes JSON that says so', async (operation) => {
    const { method, path } = operation
    const send = (raw: string, type: string) =>
      app.request(path(app.tenant), { method, raw, headers: { authorization: ours(), 'content-type': type } })
    expect(told(await send('{"name":', 'application/json'))).toEqual({
      status: 400,
      body: { errors: ['The body is not valid JSON'] },
    })
    expect((await send('{"name":"x"}', 'text/plain')).status).toBe(415)
    expect(told(await send('[]', 'application/json')).status).toBe(400)
  })

  test.each(operations)('$name: answers under both prefixes', async (operation) => {
    const plain = await ask(operation, ours())
    const prefixed = await ask({ ...operation, path: (tenant) => `/api/v1${operation.path(tenant)}` }, ours())
    expect(prefixed.status).toBe(plain.status)
    expect(prefixed.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })
})

describe('limits', () => {
  serverWith('spec')
  beforeEach(() => clock.advanceLease({ minutes: 5 }))

  test.each(ofApps)('$name: 429 as a list of text, with Retry-After', async (operation) => {
    const isRead = operation.method === 'GET'
    const most = isRead ? 100 : 1_000
    // Requests that cost nothing: the limit is judged before the body.
    const { body, ...rest } = operation
    const cheap: Operation = body ? { ...rest, body: { name: 7 } } : operation
    for (let n = 0; n < most; n += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(cheap, ours())))
      for (const { status } of answers) expect([200, 400, 404]).toContain(status)
    }
    const refused = await ask(cheap, ours())
    expect(told(refused)).toEqual({ status: 429, body: { errors: ['API rate limit exceeded'] } })
    expect(refused.headers.get('retry-after')).toBe('1')
    clock.advanceLease({ seconds: 1 })
    expect((await ask(cheap, ours())).status).not.toBe(429)
  })
})

describe('service unavailable', () => {
  let unreachable: Awaited<ReturnType<typeof startUnreachable>>
  beforeAll(async () => {
    unreachable = await startUnreachable()
  })
  afterAll(() => unreachable.close())

  test.each(operations)('$name: 503, a list with one text', async ({ method, path, body }) => {
    const response = await fetch(`${unreachable.address}${path({ id: NOBODY, organizationId: NOBODY })}`, {
      method,
      headers: { authorization: `Key ${'k'.repeat(40)}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 503,
      body: { errors: ['Service temporarily unavailable'] },
    })
  })
})
