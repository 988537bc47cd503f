import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import Type from 'typebox'
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeRoutes, fakeServer, listen, OWN_APP, talk } from '../../../test/http.ts'
import { BodiesBusy } from '../../lib/errors.ts'
import { createMetrics } from '../metrics.ts'
import { route } from '../route.ts'
import type { HttpServerOptions } from '../server.ts'
import { type BodyBudget, createBodyBudget } from './budget.ts'

const KB = 1_024
const MB = 1_024 * KB

describe('the budget', () => {
  // 8 MB: 4 MB for large bodies and 4 MB for small ones, 512 KB of each for an address.
  const budgetOf = (waitMs = 60_000) => createBodyBudget({ bytes: 8 * MB, largeBytes: 64 * KB, waitMs })
  const SHARE = 512 * KB
  const held = ({ large_bytes, small_bytes, waiting }: ReturnType<BodyBudget['stats']>) => [
    small_bytes,
    large_bytes,
    waiting,
  ]

  test('gives an address its share and no more; the rest waits, and gets it in order', async () => {
    const budget = budgetOf()
    const [first, second, third] = [budget.lease('10.0.0.1'), budget.lease('10.0.0.1'), budget.lease('10.0.0.1')]
    expect(first.hold(SHARE)).toBeUndefined()
    const order: string[] = []
    const waits = [
      second.hold(SHARE)?.then(() => order.push('second')),
      third.hold(SHARE)?.then(() => order.push('third')),
    ]
    expect(held(budget.stats())).toEqual([0, SHARE, 2])
    first.release()
    await waits[0]
    expect([order, held(budget.stats())]).toEqual([['second'], [0, SHARE, 1]])
    second.release()
    await waits[1]
    third.release()
    expect([order, held(budget.stats())]).toEqual([
      ['second', 'third'],
      [0, 0, 0],
    ])
  })

  test('one address, however many connections it has, leaves the others theirs', () => {
    const budget = budgetOf()
    const outcomes = Array.from({ length: 5_000 }, () => budget.lease('10.0.0.1').hold(MB))
    for (const wait of outcomes) wait?.catch(() => {})
    expect(budget.stats()).toMatchObject({ large_bytes: SHARE, waiting: 256, refused: 5_000 - 1 - 256 })
    for (let i = 2; i < 9; i++) expect(budget.lease(`10.0.0.${i}`).hold(SHARE)).toBeUndefined()
  })

  test('an address of IPv6 is its network', () => {
    const budget = budgetOf()
    expect(budget.lease('2001:db8::1').hold(SHARE)).toBeUndefined()
    const wait = budget.lease('2001:db8::ffff:2').hold(SHARE)
    expect(wait).toBeInstanceOf(Promise)
    wait?.catch(() => {})
  })

  test('small bodies do not wait behind large ones', () => {
    const budget = budgetOf()
    const large = budget.lease('10.0.0.1')
    large.hold(SHARE)
    budget
      .lease('10.0.0.1')
      .hold(SHARE)
      ?.catch(() => {})
    expect(budget.lease('10.0.0.1').hold(64 * KB)).toBeUndefined()
  })

  test('where all is used up, addresses take turns, and nobody overtakes', async () => {
    const budget = budgetOf()
    const holders = Array.from({ length: 8 }, (_, i) => {
      const lease = budget.lease(`10.0.1.${i}`)
      lease.hold(SHARE)
      return lease
    })
    const order: string[] = []
    const ask = (address: string, bytes: number) => {
      const lease = budget.lease(address)
      return lease.hold(bytes)?.then(() => order.push(address))
    }
    const waits = [ask('10.0.0.1', SHARE), ask('10.0.0.1', SHARE), ask('10.0.0.2', SHARE), ask('10.0.0.3', 65 * KB)]
    expect(waits.every((it) => it instanceof Promise)).toBe(true)
    waits[1]?.catch(() => {})
    for (const holder of holders.slice(0, 3)) holder.release()
    await Promise.all([waits[0], waits[2], waits[3]])
    expect(order).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  })

  test('who waits too long is told whose bodies are in the way, and when to come back', async () => {
    const budget = budgetOf(5)
    budget.lease('10.0.0.1').hold(SHARE)
    await expect(budget.lease('10.0.0.1').hold(SHARE)).rejects.toMatchObject({ kind: 'limited', retryAfterSeconds: 1 })
    for (let i = 2; i < 9; i++) budget.lease(`10.0.0.${i}`).hold(SHARE)
    const refused = budget.lease('10.0.0.9').hold(SHARE)
    await expect(refused).rejects.toBeInstanceOf(BodiesBusy)
    await expect(refused).rejects.toMatchObject({ kind: 'unavailable' })
    expect(budget.stats()).toMatchObject({ waiting: 0, refused: 2 })
  })

  test('what is granted to somebody who has left is given back', async () => {
    const budget = budgetOf()
    const first = budget.lease('10.0.0.1')
    first.hold(SHARE)
    const gone = budget.lease('10.0.0.1')
    const wait = gone.hold(SHARE)
    gone.release()
    first.release()
    await wait
    expect(held(budget.stats())).toEqual([0, 0, 0])
  })
})

describe('the server', () => {
  const opened: { server: FakeServer; sockets: Socket[] }[] = []
  afterEach(async () => {
    for (const { server, sockets } of opened.splice(0)) {
      for (const socket of sockets) socket.destroy()
      await server.close()
    }
  })
  const head = `POST /apps/${OWN_APP}/users HTTP/1.1\r\nHost: x\r\nAuthorization: Key own\r\nContent-Type: application/json\r\n`

  // 16 MB: 8 MB for large bodies, of which an address has 1 MB, and as much for small ones.
  async function start(options: Partial<HttpServerOptions> = {}) {
    const metrics = createMetrics()
    let stats: () => Record<string, number> = () => ({})
    const gauge: typeof metrics.gauge = (name, help, read) => {
      if (name === 'carillon_request_bodies') stats = read as typeof stats
      metrics.gauge(name, help, read)
    }
    const server = fakeServer({ bodyBytes: 16 * MB, metrics: { ...metrics, gauge }, drainMs: 50, ...options })
    const port = await listen(server.app)
    const sockets: Socket[] = []
    opened.push({ server, sockets })
    const open = (bytes: string) => {
      const answer = { text: '' }
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
      socket.on('data', (chunk) => {
        answer.text += chunk.toString('latin1')
      })
      socket.on('error', () => {})
      sockets.push(socket)
      return { socket, answer }
    }
    const post = async (body: string | Buffer, headers: Record<string, string> = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}/apps/${OWN_APP}/users`, {
        method: 'POST',
        headers: { authorization: 'Key own', 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : new Uint8Array(body),
      })
      return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
    }
    return { server, port, open, post, stats: () => stats() }
  }

  const slow = (gate: Promise<void>) =>
    route({
      operation: 'slow',
      method: 'POST',
      path: '/slow',
      tag: 'Test',
      summary: 'Slow',
      access: { kind: 'public' },
      errors: 'users',
      limits: [],
      body: Type.Object({}),
      answers: { 200: Type.Object({}) },
      async handle() {
        await gate
        return { status: 200, body: {} }
      },
    })

  const withheld = (bytes: number) => `${head}Content-Length: ${MB}\r\n\r\n{"x":"${'a'.repeat(bytes)}`

  test('300 bodies of 1 MB whose ends are withheld hold the share of their address, and small bodies pass', async () => {
    const { open, post, stats } = await start()
    const connections = Array.from({ length: 300 }, () => open(withheld(100_000)))
    await expect.poll(() => stats().refused).toBe(300 - 1 - 256)
    expect(stats()).toMatchObject({ large_bytes: MB, waiting: 256 })
    await expect.poll(() => connections.filter(({ answer }) => answer.text.includes(' 429 ')).length).toBe(43)
    const { text } = connections.find(({ answer }) => answer.text !== '')?.answer ?? { text: '' }
    expect(text).toMatch(/retry-after: 30/i)
    expect(JSON.parse(text.split('\r\n\r\n')[1] as string)).toEqual({
      errors: [
        { code: 'Rate Limit Exceeded', title: 'Too many request bodies from this address are under way', meta: {} },
      ],
    })
    expect((await post('{}')).status).toBe(200)
    for (const { socket } of connections) socket.destroy()
    await expect.poll(() => stats().large_bytes).toBe(0)
  })

  test('those that wait are served when the others are done', async () => {
    const { post, stats } = await start()
    const body = JSON.stringify({ x: 'a'.repeat(900_000) })
    const answers = await Promise.all(Array.from({ length: 40 }, () => post(body)))
    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200))
    expect(stats()).toMatchObject({ large_bytes: 0, small_bytes: 0, waiting: 0, refused: 0 })
  })

  test('a body is held until its request is answered', async () => {
    const gate = Promise.withResolvers<void>()
    const { port, stats } = await start({ routes: [...fakeRoutes(), slow(gate.promise)] })
    const body = JSON.stringify({ x: 'a'.repeat(200_000) })
    const answer = fetch(`http://127.0.0.1:${port}/slow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    await expect.poll(() => stats().large_bytes).toBe(body.length)
    gate.resolve()
    expect((await answer).status).toBe(200)
    await expect.poll(() => stats().large_bytes).toBe(0)
  })

  test('bodies of unknown size hold little until they are large', async () => {
    const { open, post, stats } = await start()
    const chunked = open(`${head}Transfer-Encoding: chunked\r\n\r\na\r\n{"x":"aaaa\r\n`)
    await expect.poll(() => stats().small_bytes).toBe(16 * KB)
    const chunk = `8000\r\n${'a'.repeat(0x8000)}\r\n`
    chunked.socket.write(chunk)
    await expect.poll(() => stats()).toMatchObject({ small_bytes: 0, large_bytes: MB })
    chunked.socket.write('2\r\n"}\r\n0\r\n\r\n')
    await expect.poll(() => chunked.answer.text).toContain('HTTP/1.1 200')
    const large = gzipSync(JSON.stringify({ x: 'a'.repeat(500_000) }))
    expect((await post(large, { 'content-encoding': 'gzip' })).status).toBe(200)
    expect(stats()).toMatchObject({ small_bytes: 0, large_bytes: 0, refused: 0 })
  })

  test('a body in chunks of a byte takes the memory of its bytes', async () => {
    const { server, open } = await start()
    const text = JSON.stringify({ x: 'a'.repeat(100_000) })
    const chunks = [...text].map((letter) => `1\r\n${letter}\r\n`).join('')
    const { answer } = open(`${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
    await expect.poll(() => answer.text).toContain('HTTP/1.1 200')
    expect(server.seen.at(-1)?.body).toEqual(JSON.parse(text))
  })

  test('a large body that gets on too slowly is cut and gives its memory back; a small one has the whole time', async () => {
    // A third of the time without progress, and then the whole of it twice: waiting, and arriving.
    const { open, stats } = await start({ requestTimeoutMs: 900 })
    const order: string[] = []
    const large = open(withheld(100_000))
    const small = open(`${head}Content-Length: 100\r\n\r\n{`)
    large.socket.once('data', () => order.push('large'))
    small.socket.once('data', () => order.push('small'))
    await expect.poll(() => large.answer.text).toContain('HTTP/1.1 408')
    expect(JSON.parse(large.answer.text.split('\r\n\r\n')[1] as string)).toEqual({
      errors: [{ code: 'request-4', title: 'The body stopped arriving, or arrives too slowly' }],
    })
    await expect.poll(() => small.answer.text).toContain('HTTP/1.1 408')
    expect([stats().large_bytes, order]).toEqual([0, ['large', 'small']])
  })

  test('a caller who waits too long is refused, and can use the connection again', async () => {
    const gate = Promise.withResolvers<void>()
    const { stats, port } = await start({ requestTimeoutMs: 300, routes: [...fakeRoutes(), slow(gate.promise)] })
    const body = JSON.stringify({ x: 'a'.repeat(MB - 20) })
    const headers = { 'content-type': 'application/json' }
    const holder = fetch(`http://127.0.0.1:${port}/slow`, { method: 'POST', headers, body })
    await expect.poll(() => stats().large_bytes).toBe(body.length)
    const text = await talk(
      port,
      `${head}Content-Length: ${body.length}\r\n\r\n${body}${head}Content-Length: 2\r\n\r\n{}`,
      (soFar) => soFar.includes('"now"'),
    )
    gate.resolve()
    await holder
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['429', '200'])
  })
})

describe('silent connections', () => {
  test('are cut after 30 s, looked for every 2 s', () => {
    const { server } = fakeServer({}).app
    expect([
      server.headersTimeout,
      (server as { connectionsCheckingInterval?: number }).connectionsCheckingInterval,
    ]).toEqual([30_000, 2_000])
  })

  test.each([
    ['say nothing', '', ''],
    ['say half a line', 'GET /hea', ''],
    ['send empty lines for ever', '', '\r\n'],
    ['trickle headers for ever', 'GET /health HTTP/1.1\r\n', 'X: y\r\n'],
    ['trickle headers of their second request', 'GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n', 'X: y\r\n'],
  ])('that %s are cut, all of them', async (_, start, more) => {
    const server = fakeServer({ requestTimeoutMs: 400, drainMs: 50 })
    const port = await listen(server.app)
    const sockets = Array.from({ length: 100 }, () => connect(port, '127.0.0.1'))
    let closed = 0
    for (const socket of sockets) {
      socket.on('error', () => {})
      socket.on('close', () => closed++)
      socket.resume()
      if (start !== '') socket.write(start)
    }
    const trickle = more === '' ? undefined : setInterval(() => sockets.map((socket) => socket.write(more)), 50)
    try {
      await expect.poll(() => closed).toBe(100)
    } finally {
      clearInterval(trickle)
      for (const socket of sockets) socket.destroy()
      await server.close()
    }
  })
})
