import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Answer, type HttpSink, type HttpSinkSettings, startHttpSink } from '../../test/sinks/http.ts'
import { certificateFor } from '../sink/certificate.ts'
import { type Outbound, type OutboundSettings, openOutbound } from './outbound.ts'

const open: { stop(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.stop()
})

const LOOPBACK = { allow: ['127.0.0.0/8'], allowHttp: true }

function client(settings: OutboundSettings = LOOPBACK): Outbound {
  const outbound = openOutbound(settings)
  open.push({ stop: () => outbound.close() })
  return outbound
}
async function sink(answer: Answer | ((path: string) => Answer), settings: HttpSinkSettings = {}): Promise<HttpSink> {
  const started = await startHttpSink(({ path }) => (typeof answer === 'function' ? answer(path) : answer), settings)
  open.push(started)
  return started
}

describe('an exchange', () => {
  test('brings the answer: status, headers and body', async () => {
    const { url, received } = await sink({ status: 202, headers: { 'retry-after': '7' }, body: 'thanks' })
    const result = await client().request({ url: `${url}/a?b=c#d`, headers: { 'x-mine': '1' }, body: '{"ä":1}' })
    expect(result).toMatchObject({ kind: 'answer', status: 202, headers: { 'retry-after': '7' }, isWhole: true })
    expect(result.kind === 'answer' && result.body.toString()).toBe('thanks')
    expect(received).toMatchObject([{ method: 'POST', path: '/a?b=c', body: '{"ä":1}' }])
    expect(received[0]?.headers).toMatchObject({ 'x-mine': '1', 'content-length': '8' })
  })

  test('follows no redirect', async () => {
    const inside = await sink({ status: 200 })
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await sink({ status, headers: { location: `${inside.url}/secret` } })
      expect(await client().request({ url })).toMatchObject({ kind: 'answer', status })
    }
    expect(inside.connections()).toBe(0)
  })

  test('reads no more than 64 kB of an answer, and keeps its status', async () => {
    const { url } = await sink((path) => ({ status: 200, body: 'x'.repeat(Number(path.slice(1))) }))
    const whole = await client().request({ url: `${url}/65536` })
    expect(whole).toMatchObject({ kind: 'answer', status: 200, isWhole: true })
    const cut = await client().request({ url: `${url}/5000000` })
    expect(cut).toMatchObject({ kind: 'answer', status: 200, isWhole: false })
    expect(cut.kind === 'answer' && cut.body.length).toBe(65_536)
  })

  test('reads as much as was asked for, and takes as long', async () => {
    const { url } = await sink((path) => (path === '/' ? 'silent' : { status: 200, body: 'x'.repeat(1_000_000) }))
    const request = (more: object) => client().request({ url: `${url}/file`, method: 'GET', ...more })
    expect(await request({ maxAnswerBytes: 1_000_000 })).toMatchObject({ status: 200, isWhole: true })
    expect(await request({ maxAnswerBytes: 999_999 })).toMatchObject({ status: 200, isWhole: false })
    expect(await request({ maxAnswerBytes: 0 })).toMatchObject({ status: 200, isWhole: false })
    expect(await client().request({ url, timeoutMs: 100 })).toEqual({ kind: 'unanswered', reason: 'timeout' })
  })

  test('uses a connection again, and goes through no proxy of the environment', async () => {
    const { url, connections } = await sink({ status: 200 })
    const proxy = await sink({ status: 200 })
    onTestFinished(() => void vi.unstubAllEnvs())
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) vi.stubEnv(name, proxy.url)
    vi.stubEnv('NODE_USE_ENV_PROXY', '1')
    const outbound = client()
    for (let i = 0; i < 3; i++) expect(await outbound.request({ url })).toMatchObject({ kind: 'answer' })
    expect(connections()).toBe(1)
    expect(proxy.connections()).toBe(0)
  })

  test('refuses what cannot be written, without a word on the wire', async () => {
    const { url, connections } = await sink({ status: 200 })
    const outbound = client()
    expect(await outbound.request({ url, headers: { 'x-bad': 'a\r\nhost: b' } })).toMatchObject({ kind: 'refused' })
    expect(await outbound.request({ url, headers: { 'bad name': 'a' } })).toMatchObject({ kind: 'refused' })
    expect(await outbound.request({ url, method: 'BAD METHOD' })).toMatchObject({ kind: 'refused' })
    expect(connections()).toBe(0)
  })
})

describe('what became of a request without a whole answer', () => {
  test.each(['reset', 'half'] as const)('all written, then %s: unanswered', async (answer) => {
    const { url, received } = await sink(answer)
    expect(await client().request({ url, body: 'x' })).toMatchObject({ kind: 'unanswered', reason: 'connection lost' })
    expect(received).toHaveLength(1)
  })

  test('all written, and silence: unanswered when the time is up', async () => {
    const { url } = await sink('silent')
    const result = await client({ ...LOOPBACK, timeoutMs: 150 }).request({ url })
    expect(result).toEqual({ kind: 'unanswered', reason: 'timeout' })
  })

  test('an answer that never ends: unanswered when the time is up', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc')
    })
    const url = await listening(server)
    expect(await client({ ...LOOPBACK, timeoutMs: 150 }).request({ url })).toEqual({
      kind: 'unanswered',
      reason: 'timeout',
    })
  })

  test('an answer that is no HTTP: unanswered', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.end('220 mail.example.com ESMTP\r\n'))
    })
    const url = await listening(server)
    expect(await client().request({ url })).toEqual({ kind: 'unanswered', reason: 'answer not understood' })
  })

  test('a body that did not go out whole: unreached', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => setImmediate(() => socket.resetAndDestroy()))
    })
    const url = await listening(server)
    const result = await client().request({ url, body: Buffer.alloc(20_000_000) })
    expect(result).toEqual({ kind: 'unreached', reason: 'connection lost' })
  })

  test('a receiver that reads nothing: unreached when the time is up', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.pause()
    })
    const url = await listening(server)
    const result = await client({ ...LOOPBACK, timeoutMs: 300 }).request({ url, body: Buffer.alloc(20_000_000) })
    expect(result).toEqual({ kind: 'unreached', reason: 'timeout' })
  })

  test('nobody there, a name that nobody knows, a resolver that hangs: unreached', async () => {
    const { url, stop } = await startHttpSink(() => 'silent')
    await stop()
    expect(await client().request({ url })).toEqual({ kind: 'unreached', reason: 'connection refused' })
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND nobody.example'), { code: 'ENOTFOUND' })
    const lost = client({ ...LOOPBACK, lookup: () => Promise.reject(unknown) })
    expect(await lost.request({ url: 'https://nobody.example' })).toEqual({
      kind: 'unreached',
      reason: 'name not found',
    })
    const hanging = client({ ...LOOPBACK, timeoutMs: 100, lookup: () => new Promise(() => {}) })
    expect(await hanging.request({ url: 'https://slow.example' })).toEqual({ kind: 'unreached', reason: 'timeout' })
  })

  async function listening(server: ReturnType<typeof createServer>) {
    const sockets = new Set<{ destroy(): void }>()
    server.on('connection', (socket) => sockets.add(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push({
      async stop() {
        for (const socket of sockets) socket.destroy()
        server.close()
        await once(server, 'close')
      },
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
})

describe('over TLS', () => {
  const certificate = certificateFor('hooks.example', '127.0.0.1')
  const lookup = async () => [{ address: '127.0.0.1', family: 4 }]

  test('a receiver is believed only with a certificate for its name', async () => {
    const { port, received } = await sink({ status: 200 }, { tls: certificate })
    const route = { ca: certificate.cert }
    const trusting = client({ ...LOOPBACK, route, lookup })
    expect(await trusting.request({ url: `https://hooks.example:${port}` })).toMatchObject({ kind: 'answer' })
    expect(await trusting.request({ url: `https://hooks.example.:${port}` })).toMatchObject({ kind: 'answer' })
    expect(await trusting.request({ url: `https://127.0.0.1:${port}` })).toMatchObject({ kind: 'answer' })
    expect(received.map(({ headers }) => headers.host)).toEqual([
      `hooks.example:${port}`,
      `hooks.example.:${port}`,
      `127.0.0.1:${port}`,
    ])
    const refused = { kind: 'unreached', reason: 'certificate not accepted' }
    expect(await trusting.request({ url: `https://other.example:${port}` })).toEqual(refused)
    expect(await client({ ...LOOPBACK, lookup }).request({ url: `https://hooks.example:${port}` })).toEqual(refused)
    expect(received).toHaveLength(3)
  })

  test('an origin can be led elsewhere, with its name and certificate unchanged', async () => {
    const { port, received } = await sink({ status: 200 }, { tls: certificate })
    const connect = { 'https://hooks.example': { host: '127.0.0.1', port } }
    const outbound = client({ route: { ca: certificate.cert, connect } })
    expect(await outbound.request({ url: 'https://hooks.example/x' })).toMatchObject({ kind: 'answer', status: 200 })
    expect(received[0]?.headers.host).toBe('hooks.example')
  })

  test('all others of a scheme can be led elsewhere, and are believed by name; no other scheme is', async () => {
    const [one, others] = [
      await sink({ status: 200 }, { tls: certificate }),
      await sink({ status: 201 }, { tls: certificate }),
    ]
    const connect = {
      'https://127.0.0.1': { host: '127.0.0.1', port: one.port },
      'https://*': { host: '127.0.0.1', port: others.port },
    }
    const outbound = client({ route: { ca: certificate.cert, connect }, allowHttp: true })
    expect(await outbound.request({ url: 'https://127.0.0.1' })).toMatchObject({ status: 200 })
    expect(await outbound.request({ url: 'https://hooks.example' })).toMatchObject({ status: 201 })
    expect(await outbound.request({ url: 'https://hooks.example:5432' })).toMatchObject({ status: 201 })
    expect(await outbound.request({ url: 'https://other.example' })).toMatchObject({
      reason: 'certificate not accepted',
    })
    expect(await outbound.request({ url: 'http://127.0.0.1' })).toMatchObject({ reason: 'address not allowed' })
  })

  test('a handshake that never comes to an end: unreached when the time is up', async () => {
    const server = createServer(() => {})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const result = await client({ ...LOOPBACK, timeoutMs: 150 }).request({ url: `https://127.0.0.1:${port}` })
    expect(result).toEqual({ kind: 'unreached', reason: 'timeout' })
    server.close()
  })
})

test('plain http can be for networks that were named, and for those alone', async () => {
  const { url, port, received } = await sink({ status: 200 })
  const lookup = async (name: string) => [{ address: name === 'in.example' ? '127.0.0.1' : '93.184.215.14', family: 4 }]
  const outbound = client({ allow: ['127.0.0.1'], allowHttp: 'inside', lookup })
  expect(await outbound.request({ url })).toMatchObject({ kind: 'answer' })
  expect(await outbound.request({ url: `http://in.example:${port}` })).toMatchObject({ kind: 'answer' })
  const refused = { kind: 'refused', reason: 'scheme not allowed' }
  expect(await outbound.request({ url: 'http://out.example' })).toEqual(refused)
  expect(await outbound.request({ url: 'http://93.184.215.14' })).toEqual(refused)
  expect(received).toHaveLength(2)
})

test('closing waits for what is under way', async () => {
  const { promise, resolve: answer } = Promise.withResolvers<Answer>()
  const started = await startHttpSink(() => promise)
  open.push(started)
  const outbound = openOutbound(LOOPBACK)
  const asked = outbound.request({ url: started.url })
  await vi.waitFor(() => expect(started.received).toHaveLength(1))
  let isClosed = false
  const closed = outbound.close().then(() => {
    isClosed = true
  })
  await new Promise(setImmediate)
  expect(isClosed).toBe(false)
  answer({ status: 200 })
  expect(await asked).toMatchObject({ kind: 'answer' })
  await closed
})
