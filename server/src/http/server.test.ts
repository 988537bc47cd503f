import { request as httpRequest } from 'node:http'
import fc from 'fast-check'
import Type from 'typebox'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeKeys, fakeLimits, fakeRoutes, fakeServer, listen, OWN_APP } from '../../test/http.ts'
import { virtualClock } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import { createLog } from '../lib/log.ts'
import { createMetrics } from './metrics.ts'
import { type Route, route } from './route.ts'
import { createHttpServer } from './server.ts'

let server: FakeServer
const opened: FakeServer[] = []
const open = (...options: Parameters<typeof fakeServer>) => {
  const one = fakeServer(...options)
  opened.push(one)
  return one
}
beforeEach(() => {
  server = open()
})
afterAll(() => Promise.all(opened.map((one) => one.close())))

const KEY = { authorization: 'Key own' }
const JSON_TYPE = 'application/json; charset=utf-8'

describe('a table of routes that does not hold together does not start', () => {
  const start = (...changes: Partial<Route>[]) => {
    const [first] = fakeRoutes()
    const metrics = createMetrics()
    try {
      createHttpServer({
        routes: changes.map((change) => ({ ...(first as Route), ...change })),
        keys: fakeKeys(),
        limits: fakeLimits(),
        clock: virtualClock(),
        log: createLog('silent'),
        metrics,
        isReady: () => true,
      })
    } finally {
      metrics.close()
    }
  }
  const none = undefined as never

  test('as it is, it starts', () => expect(() => start({})).not.toThrow())
  test.each<[string, Partial<Route>[]]>([
    ['does not declare who may call it', [{ access: none }]],
    ['does not declare its limits', [{ limits: none }]],
    ['does not declare the shape of its errors', [{ errors: none }]],
    ['does not declare its answers', [{ answers: {} }]],
    ['names the error style "nope"', [{ errors: 'nope' as never }]],
    ['is declared twice', [{}, { path: '/apps/:app_id/other' }]],
    ['has the method and path of another operation', [{}, { operation: 'again', path: '/apps/:id/users' }]],
    ['names the limit "real.write", which is not there', [{ limits: [{ rule: 'real.write' }] }]],
    ['has no :app_id in its path', [{ path: '/users' }]],
    ['has limits, which are counted per app, but no app', [{ access: { kind: 'public' } }]],
    ['declares a body, which GET has not', [{ method: 'GET' }]],
    [
      'takes the app from a body that it does not declare',
      [{ access: { kind: 'app', permission: 'users', appIn: 'body' }, body: none }],
    ],
    ['declares the path parameter nope', [{ params: Type.Object({ nope: Type.String() }) }]],
  ])('%s', (problem, changes) => {
    expect(() => start(...changes)).toThrow(problem)
  })
})

describe('every answer is JSON', () => {
  test.each([
    ['GET', '/nope', 404],
    ['POST', '/nope', 404],
    ['POST', '/', 405],
    ['GET', '//nope', 404],
    ['GET', '/players', 405],
    ['PATCH', `/api/v1/apps/${OWN_APP}/users`, 405],
    ['PROPFIND', '/players', 405],
    ['OPTIONS', '/players', 405],
    ['OPTIONS', '/nope', 404],
    ['GET', '/apps/%zz/users/by/a/b', 400],
    ['GET', `/apps/${OWN_APP}/users/by/a/%ff`, 400],
    ['GET', `/apps/${OWN_APP}/users/by/a/%ed%a0%80`, 400],
  ] as const)('%s %s: %i', async (method, url, status) => {
    const response = await server.app.inject({ method: method as 'GET', url, headers: KEY })
    expect(response.statusCode).toBe(status)
    expect(response.headers['content-type']).toBe(JSON_TYPE)
    expect(response.json()).toEqual({ errors: [expect.any(String)] })
  })

  test('405 says what is allowed', async () => {
    const allowed = async (url: string) => (await server.app.inject({ method: 'PUT', url })).headers.allow
    expect(await allowed('/players')).toBe('POST')
    expect(await allowed('/api/v1/apps')).toBe('GET, HEAD')
    expect(await allowed(`/apps/${OWN_APP}/users`)).toBe('OPTIONS, POST')
  })

  test('HEAD is GET without the body', async () => {
    const get = await server.app.inject({ url: '/health' })
    const head = await server.app.inject({ method: 'HEAD', url: '/health' })
    expect([head.statusCode, head.headers['content-length'], head.body]).toEqual([
      200,
      get.headers['content-length'],
      '',
    ])
  })

  test('every route is served under both addresses', async () => {
    for (const prefix of ['', '/api/v1']) {
      const url = `${prefix}/apps/${OWN_APP}/users`
      const response = await server.app.inject({ method: 'POST', url, headers: KEY, payload: {} })
      expect(response.statusCode).toBe(200)
    }
  })
})

describe('errors', () => {
  const fail = async (how: string) => {
    const response = await server.app.inject({ method: 'POST', url: `/fail/${how}` })
    return { status: response.statusCode, body: response.json() }
  }

  test('of the catalogue have the shape of their route', async () => {
    expect(await fail('conflict')).toEqual({
      status: 409,
      body: { errors: [{ code: 'user-2', title: 'Taken', meta: { external_id: 'x' } }] },
    })
    expect(await fail('down')).toEqual({ status: 503, body: { errors: ['Service temporarily unavailable'] } })
  })

  test('of the database about data are the caller’s', async () => {
    expect((await fail('data')).status).toBe(400)
    expect(server.log.join()).toContain('22P02')
    expect(server.log.join()).not.toContain('planted-secret')
  })

  test('of ours are 500 in plain strings, logged once with the request’s id and without data', async () => {
    const response = await server.app.inject({
      method: 'POST',
      url: '/fail/constraint',
      headers: { 'x-request-id': 'abc', authorization: 'Key planted-key' },
      payload: { secret: 'planted-body' },
    })
    expect([response.statusCode, response.json()]).toEqual([500, { errors: ['Internal server error'] }])
    expect(server.log).toHaveLength(1)
    expect(JSON.parse(server.log[0] as string)).toMatchObject({ request: 'abc', operation: 'fail', state: '23505' })
    expect(server.log[0]).not.toContain('planted')
    await fail('bug')
    expect(JSON.parse(server.log[1] as string)).toMatchObject({ failure: 'TypeError', at: expect.any(Array) })
  })

  test('of the key lookup are answered like any other', async () => {
    server.keys.failure = new AppError('unavailable', { code: 'service-0', title: 'Service temporarily unavailable' })
    const response = await server.app.inject({ method: 'POST', url: `/apps/${OWN_APP}/users`, headers: KEY })
    expect(response.statusCode).toBe(503)
  })
})

describe('request ids', () => {
  const idFor = async (given?: string) => {
    const response = await server.app.inject({
      url: '/nope',
      headers: given === undefined ? {} : { 'x-request-id': given },
    })
    return response.headers['x-request-id'] as string
  }
  test('are kept when they are sane, made otherwise', async () => {
    expect(await idFor('trace-1.2:3_x')).toBe('trace-1.2:3_x')
    const made = new Set([
      await idFor(),
      await idFor(),
      await idFor(''),
      await idFor('x'.repeat(129)),
      await idFor('a b"'),
    ])
    expect(made.size).toBe(5)
    for (const id of made) expect(id).toMatch(/^[0-9a-f]{10}-[0-9a-z]+$/)
  })
})

describe('paths and queries', () => {
  const view = async (value: string, query = '') => {
    const url = `/apps/${OWN_APP}/users/by/external_id/${value}${query}`
    const response = await server.app.inject({ url, headers: KEY })
    return { status: response.statusCode, body: response.json() }
  }

  test('any text survives the way through a path and a query', async () => {
    const storable = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((text) => !text.includes('\0') && text.isWellFormed())
      // However they are encoded, clients take these two out of a path before it is sent.
      .filter((text) => text !== '.' && text !== '..')
    await fc.assert(
      fc.asyncProperty(storable, async (text) => {
        const { body } = await view(
          encodeURIComponent(text).replaceAll('.', '%2E'),
          `?names=${encodeURIComponent(text)}`,
        )
        expect([body.params?.value, body.query?.names]).toEqual([text, [text]])
      }),
      { numRuns: 300 },
    )
  })

  test('an encoded slash belongs to the value, and so does an encoded percent sign', async () => {
    expect((await view('a%2Fb')).body.params.value).toBe('a/b')
    expect((await view('a%252Fb')).body.params.value).toBe('a%2Fb')
    expect((await view('100%25')).body.params.value).toBe('100%')
  })

  test('long values reach the handler', async () => {
    expect((await view('x'.repeat(5_000))).body.params.value).toHaveLength(5_000)
  })

  test.each(['%00', 'a%00b'])('%s is refused in a path and in a query', async (text) => {
    expect((await view(text)).status).toBe(400)
    expect((await view('x', `?names=${text}`)).status).toBe(400)
    expect((await view('x', `?${text}=1`)).status).toBe(400)
  })

  test('a query that is not correctly encoded is refused', async () => {
    expect((await view('x', '?limit=%zz')).status).toBe(400)
    expect((await view('x', '?names=%ff')).status).toBe(400)
  })

  test('raw bytes above ASCII are refused', async () => {
    const port = await listen(server.app)
    const ask = (path: string) =>
      new Promise<number | undefined>((resolve) => {
        // inject() would encode the path.
        httpRequest({ port, path: Buffer.from(path, 'utf8').toString('latin1'), headers: KEY }, (response) => {
          response.resume()
          resolve(response.statusCode)
        }).end()
      })
    expect(await ask(`/apps/${OWN_APP}/users/by/external_id/é`)).toBe(400)
    expect(await ask(`/apps/${OWN_APP}/users/by/external_id/e?names=é`)).toBe(400)
    expect(await ask(`/apps/${OWN_APP}/users/by/external_id/e`)).toBe(200)
  })

  test.each([
    ['', { limit: 50 }],
    ['?limit=10&offset=0', { limit: 10, offset: 0 }],
    ['?all=true', { limit: 50, all: true }],
    ['?names=a', { limit: 50, names: ['a'] }],
    ['?names=a&names=b', { limit: 50, names: ['a', 'b'] }],
    ['?more=1', { limit: 50, more: '1' }],
    ['?names=a+b%2Bc', { limit: 50, names: ['a b+c'] }],
  ])('%j is read as %j', async (query, expected) => {
    expect((await view('x', query)).body.query).toEqual(expected)
  })

  test.each([
    'limit=0',
    'limit=51',
    'limit=',
    'limit=1.5',
    'limit=0x10',
    'limit=%201',
    'limit=ten',
    'limit=1&limit=2',
    'limit',
    'limit=1e1',
    'limit=99999999999999999999',
    'offset=-1',
    'all=yes',
    'all=1',
  ])('%j is refused', async (query) => {
    const { status, body } = await view('x', `?${query}`)
    expect(status).toBe(400)
    expect(body.errors[0]).toMatchObject({
      code: 'request-0',
      title: expect.stringMatching(/^(limit|offset|all) must be/),
    })
  })

  test('ids in a path come in any case; what is no id is told with its value', async () => {
    const remove = async (id: string) => {
      const response = await server.app.inject({
        method: 'DELETE',
        url: `/apps/${OWN_APP}/subscriptions/${id}`,
        headers: KEY,
      })
      return response.json()
    }
    const id = 'ABCDEF00-0000-1000-8000-000000000001'
    expect((await remove(id)).params.subscription_id).toBe(id.toLowerCase())
    expect(await remove('123')).toEqual({
      errors: [{ code: 'request-1', title: 'Invalid UUID', meta: { subscription_id: '123' } }],
    })
  })
})

test('limits are asked for what the route declares', async () => {
  await server.app.inject({ url: `/apps/${OWN_APP}/users/by/external_id/ada`, headers: KEY })
  await server.app.inject({ url: `/apps/${OWN_APP}/users/by/external_id/ada?offset=5`, headers: KEY })
  await server.app.inject({ method: 'POST', url: `/apps/${OWN_APP}/users`, headers: KEY, payload: {} })
  const reads = [
    { rule: 'fake.read', counter: 'reads' },
    { rule: 'fake.one', counter: 'viewUser', subject: 'ada' },
  ]
  expect(server.limits.taken).toEqual([
    reads,
    [...reads, { rule: 'fake.page', counter: 'viewUser' }],
    [{ rule: 'fake.write', counter: 'createUser' }],
  ])
})

describe('other sites', () => {
  test('may call what needs no key', async () => {
    const preflight = await server.app.inject({
      method: 'OPTIONS',
      url: `/api/v1/apps/${OWN_APP}/users`,
      headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
    })
    expect([preflight.statusCode, preflight.body]).toEqual([204, ''])
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': expect.stringContaining('SDK-Version'),
    })
    expect(preflight.headers['access-control-allow-headers']).toContain('OneSignal-Subscription-Id')
    const answer = await server.app.inject({ method: 'POST', url: `/apps/${OWN_APP}/users`, payload: {} })
    expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([401, '*'])
  })

  test('may not call the rest', async () => {
    const answer = await server.app.inject({ method: 'POST', url: '/players', payload: {} })
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('the kit’s own routes', () => {
  test('health is always well, readiness follows the server', async () => {
    let isReady = true
    const own = open({ isReady: () => isReady })
    const ask = async (url: string) => {
      const response = await own.app.inject({ url })
      return [response.statusCode, response.json()]
    }
    expect(await ask('/ready')).toEqual([200, { status: 'ready' }])
    isReady = false
    expect(await ask('/ready')).toEqual([503, { errors: ['Service temporarily unavailable'] }])
    expect(await ask('/health')).toEqual([200, { status: 'ok' }])
  })

  test('metrics count requests by operation and status', async () => {
    const metrics = createMetrics()
    metrics.gauge('carillon_pool', 'Connections.', () => ({ total: 3, idle: 1 }))
    const own = open({ metrics })
    for (const payload of [{}, {}, { identity: 5 }])
      await own.app.inject({ method: 'POST', url: `/apps/${OWN_APP}/users`, headers: KEY, payload })
    await own.app.inject({ url: '/nope' })
    const { body } = await own.app.inject({ url: '/metrics', headers: { authorization: 'Key org' } })
    metrics.close()
    const count = 'carillon_http_request_duration_seconds_count'
    expect(body).toContain(`${count}{operation="createUser",status="200"} 2`)
    expect(body).toContain(`${count}{operation="createUser",status="400"} 1`)
    expect(body).toContain(`${count}{operation="none",status="404"} 1`)
    expect(body).toMatch(/_bucket\{le="\+Inf",operation="createUser",status="200"\} 2/)
    expect(body).toContain('carillon_pool{kind="idle"} 1')
    expect(body).toMatch(/carillon_event_loop_delay_seconds\{kind="p99"\} [\d.e-]+/)
    expect(body).toMatch(/carillon_memory_bytes\{kind="rss"\} \d+/)
  })

  test('requests are logged at debug level alone', async () => {
    await server.app.inject({ url: '/health' })
    expect(server.log).toEqual([])
    const talkative = open({ logLevel: 'debug' })
    await talkative.app.inject({ url: '/health', headers: { authorization: 'Key planted-key' } })
    expect(talkative.log).toHaveLength(1)
    expect(talkative.log[0]).toContain('getHealth')
    expect(talkative.log[0]).not.toContain('planted')
  })
})

describe('closing', () => {
  const slow = (gate: Promise<void>, entered: () => void) =>
    route({
      operation: 'slow',
      method: 'GET',
      path: '/slow',
      tag: 'Test',
      summary: 'Slow',
      access: { kind: 'public' },
      errors: 'apps',
      limits: [],
      answers: { 200: Type.Object({}) },
      async handle() {
        entered()
        await gate
        return { status: 200, body: {} }
      },
    })

  test('finishes what is under way and takes nothing new', async () => {
    const gate = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    const own = fakeServer({ routes: [slow(gate.promise, entered.resolve)] })
    const port = await listen(own.app)
    const answer = fetch(`http://127.0.0.1:${port}/slow`)
    await entered.promise
    const closed = own.close()
    await expect.poll(() => own.app.server.listening).toBe(false)
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow()
    gate.resolve()
    const response = await answer
    expect([response.status, response.headers.get('connection')]).toEqual([200, 'close'])
    await closed
  })

  test('says that it is not ready while it still takes requests, and ends connections with their answers', async () => {
    const noticed = Promise.withResolvers<void>()
    const own = fakeServer({ routes: [], linger: () => noticed.promise })
    const port = await listen(own.app)
    const get = async (path: string) => {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}${path}`)
      return [status, headers.get('connection')]
    }
    expect(await get('/ready')).toEqual([200, 'keep-alive'])
    own.app.startDraining()
    expect(await get('/ready')).toEqual([503, 'close'])
    expect(await get('/health')).toEqual([200, 'close'])
    const closed = own.close()
    expect(await get('/health')).toEqual([200, 'close'])
    noticed.resolve()
    await closed
    await expect(get('/health')).rejects.toThrow()
  })

  test('does not wait longer than its deadline', async () => {
    const entered = Promise.withResolvers<void>()
    const own = fakeServer({ routes: [slow(new Promise(() => {}), entered.resolve)], drainMs: 50 })
    const port = await listen(own.app)
    const answer = fetch(`http://127.0.0.1:${port}/slow`)
    const cut = expect(answer).rejects.toThrow()
    await entered.promise
    await own.close()
    await cut
  })
})
