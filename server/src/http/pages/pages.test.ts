import { hash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeServer, fakeRoutes, fakeServer } from '../../../test/http.ts'
import { VERSION } from '../../lib/version.ts'
import { describeApi } from '../openapi.ts'
import { route } from '../route.ts'
import { createGuides } from './guides.ts'
import { operationsOf, renderReference } from './reference.ts'
import { pageRoutes } from './routes.ts'

let server: FakeServer
beforeAll(() => {
  server = fakeServer()
})
afterAll(() => server.close())

const get = (url: string, headers: Record<string, string> = {}) => server.app.inject({ url, headers })
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

describe('every page', () => {
  test.each(['/', '/docs', '/docs/try-it', '/docs/decisions/0001-one-store'])(
    '%s runs nothing but its own script and style, and loads nothing from elsewhere',
    async (path) => {
      const { statusCode, headers, body } = await get(path, { accept: BROWSER })
      expect(statusCode).toBe(200)
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      const policy = headers['content-security-policy'] as string
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toContain('unsafe')
      for (const tag of ['style', 'script']) {
        const blocks = [...body.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))].map((match) => match[1] ?? '')
        expect(blocks.length).toBeLessThanOrEqual(1)
        for (const block of blocks) expect(policy).toContain(`${tag}-src 'sha256-${hash('sha256', block, 'base64')}'`)
      }
      expect(body).not.toMatch(/ src="|<link[^>]+href="(?:https?:)?\/\//)
      expect(body).not.toMatch(/<[a-z][^>]* (?:style|on\w+)=/)
      expect(body).toContain('name="viewport"')
    },
  )

  test('has an icon, for old browsers too', async () => {
    const svg = await get('/favicon.svg')
    expect([svg.statusCode, svg.headers['content-type']]).toEqual([200, 'image/svg+xml'])
    const ico = await get('/favicon.ico')
    expect([ico.statusCode, ico.headers['content-type']]).toEqual([200, 'image/x-icon'])
    expect(ico.rawPayload.subarray(0, 4)).toEqual(Buffer.from([0, 0, 1, 0]))
    expect(ico.rawPayload.subarray(22, 26).toString('latin1')).toBe('\x89PNG')
    expect((await get('/', { accept: BROWSER })).body).toContain('rel="icon" href="/favicon.ico"')
  })
})

describe('the first page', () => {
  test('says what this is, its version and state, and where to go', async () => {
    const { body } = await get('/', { accept: BROWSER, host: 'bell.example:8080' })
    for (const words of ['Carillon', VERSION, '11.6', 'href="/docs"', 'href="/demo"', 'href="/docs/try-it"', '>ready<'])
      expect(body).toContain(words)
    expect(body).toContain('curl &quot;http://localhost:3000/apps/$APP_ID/users&quot;')
    expect(body).not.toContain('/dashboard')
  })

  test('names no address that a request makes up', async () => {
    for (const host of ['evil.example', 'x"><script>alert(1)</script>']) {
      const { body } = await get('/', { accept: BROWSER, host })
      expect(body).not.toContain(host)
      expect(body).toContain('http://localhost:3000/notifications')
    }
  })

  test.each([
    ['application/json', true],
    ['application/vnd.onesignal.v1+json', true],
    ['text/html;q=0.5, application/json', true],
    [BROWSER, false],
    ['*/*', false],
    ['application/json;q=0.1, text/html', false],
  ])('to who accepts %s is JSON: %s', async (accept, isJson) => {
    const { headers, body } = await get('/', { accept })
    expect(headers.vary).toBe('accept')
    expect(headers['content-type']).toContain(isJson ? 'application/json' : 'text/html')
    if (!isJson) return
    expect(JSON.parse(body)).toEqual({
      name: 'Carillon',
      version: VERSION,
      interface_version: '11.6',
      status: 'ready',
      links: {
        documentation: '/docs',
        openapi: '/openapi.json',
        demo: '/demo',
        health: '/health',
        ready: '/ready',
      },
    })
  })

  test('says when the server is not ready, and links to the dashboard where there is one', async () => {
    const dashboard = route({
      operation: 'getDashboard',
      method: 'GET',
      path: '/dashboard',
      tag: 'Server',
      summary: 'The dashboard',
      access: { kind: 'public' },
      errors: 'apps',
      limits: [],
      answers: { 200: {} },
      handle: () => ({ status: 200, body: {} }),
    })
    const other = fakeServer({ isReady: () => false, routes: [...fakeRoutes(), dashboard] })
    const page = await other.app.inject({ url: '/', headers: { accept: BROWSER } })
    const json = await other.app.inject({ url: '/', headers: { accept: 'application/json' } })
    await other.close()
    expect(page.body).toContain('not ready')
    expect(page.body).toContain('href="/dashboard"')
    expect(JSON.parse(json.body)).toMatchObject({ status: 'unavailable', links: { dashboard: '/dashboard' } })
  })
})

describe('the description for people', () => {
  const api = describeApi(fakeRoutes())
  const parts = { api, guides: createGuides().list(), version: VERSION, origin: 'http://bell.example' }

  test('shows every operation with an example in curl and Node, both versions, and the guides', () => {
    const html = renderReference(parts)
    for (const { operation } of operationsOf(api)) {
      const section = html.split(`id="${operation.operationId}"`)[1]?.split('</section>')[0] ?? ''
      expect(section).toContain('<code>curl ')
      expect(section).toContain('await fetch(')
    }
    expect(html).toContain(`Carillon ${VERSION}`)
    expect(html).toContain('Interface 11.6')
    for (const { slug } of parts.guides) expect(html).toContain(`href="/docs/${slug}"`)
  })

  test('hides no markup of its own making', () => {
    const [first] = fakeRoutes()
    if (!first) throw new Error('no route')
    const evil = renderReference({
      ...parts,
      api: describeApi([{ ...first, summary: '<script>alert(1)</script>', description: '<img src=x>' }]),
    })
    expect(evil).not.toContain('<script>alert')
    expect(evil).not.toContain('<img')
  })

  test('can hide a group of which nothing is found: each has what its operations are found by within it', () => {
    const html = renderReference(parts)
    const groups = html.split(/<\w+ data-group/).slice(1)
    expect(groups.length).toBe(2 * api.tags.length + 1)
    for (const group of groups) expect(group).toContain('data-words=')
    expect(html).toContain("group.hidden=!group.querySelector('[data-words]:not([hidden])')")
  })

  test('names the address of the server, whatever Host says', async () => {
    expect((await get('/docs', { host: 'bell.example' })).body).toContain(
      'curl -X PUT &quot;http://localhost:3000/apps/$APP_ID',
    )
    const known = fakeServer({ baseUrl: () => 'https://push.example' })
    const { body } = await known.app.inject({ url: '/docs', headers: { host: 'bell.example' } })
    await known.close()
    expect(body).toContain('&quot;https://push.example/apps/$APP_ID')
    expect(body).not.toContain('origin.invalid')
  })
})

describe('guides', () => {
  test('are found by name, and nothing else is', async () => {
    expect((await get('/docs/messages')).body).toContain('<h1 id="messages">Messages</h1>')
    for (const path of ['/docs/nothing', '/docs/..%2fpackage', '/docs/decisions/..%2fapi', '/docs/__proto__']) {
      const { statusCode, body } = await get(path)
      expect([statusCode, JSON.parse(body)]).toEqual([404, { errors: ['There is no such guide; see /docs'] }])
    }
  })

  test('are not sent again to who has them', async () => {
    const { headers } = await get('/docs/messages')
    const again = await get('/docs/messages', { 'if-none-match': headers.etag as string })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  })

  test('link to operations that they mention', async () => {
    expect((await get('/docs/accounts-and-keys')).body).toContain('<a href="/docs#listApps"><code>GET /apps</code></a>')
  })

  test('may be missing: everything else is there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'no-guides-'))
    try {
      const root = pathToFileURL(`${folder}/`)
      expect(createGuides({ root }).list()).toEqual([])
      const routes = pageRoutes({
        describe: () => describeApi(fakeRoutes()),
        isReady: async () => true,
        baseUrl: () => 'http://localhost:3000',
        hasDashboard: false,
        root,
      })
      const call = { header: () => undefined }
      for (const path of ['/', '/docs']) {
        const handle = routes.find((one) => one.path === path)?.handle as unknown as (
          call: object,
        ) => Promise<{ status: number; body: string }>
        const { status, body } = await handle(call)
        expect(status).toBe(200)
        expect(body).not.toContain('/docs/')
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
