import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { type ScriptedProvider, type ScriptedProviderSettings, startProvider } from '../../../../test/sinks/scripted.ts'
import type { SinkService } from '../../../sink/service.ts'
import { createPushHttpClient, type PushHttpClient, type PushHttpSettings } from './client.ts'
import type { ProviderReply } from './exchange.ts'
import { openHttp2Connection } from './h2-connection.ts'
import { describeConnectFailure } from './open-tls.ts'

const HOST = 'push.example.com'
const ORIGIN = `https://${HOST}`

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open.splice(0).reverse()) await it.close()
})

type Settings = Partial<ScriptedProviderSettings & Pick<SinkService, 'accept'>>

async function start({ accept, ...settings }: Settings = {}, client: PushHttpSettings = {}) {
  const service: SinkService = {
    check: () => undefined,
    accept: accept ?? (({ path }) => ({ status: 200, body: path })),
    addressOf: ({ path }) => path,
  }
  const provider = await startProvider({ hosts: [HOST], ...settings }, () => service)
  open.push(provider)
  return { provider, client: connectTo(provider, client) }
}

function connectTo(provider: ScriptedProvider, settings: PushHttpSettings = {}): PushHttpClient {
  const client = createPushHttpClient({ route: provider.route, deadlineMs: 5_000, ...settings })
  open.push(client)
  return client
}

const post = (client: PushHttpClient, path: string, origin = ORIGIN, appId = 'an app') =>
  client.request({ appId, origin, path, headers: {}, body: 'hello' })
const postMany = (client: PushHttpClient, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => post(client, `/${n}`)))
const kinds = (replies: ProviderReply[]) => replies.map(({ kind }) => kind)

describe('a whole answer', () => {
  test('comes with status, headers and body, many at once on one connection', async () => {
    const { provider, client } = await start()
    provider.script('/3', { status: 429, headers: { 'retry-after': '7' }, body: 'slow down' })
    const replies = await postMany(client, 300)
    expect(replies[3]).toMatchObject({ kind: 'answer', status: 429, body: 'slow down' })
    expect(replies[3]).toHaveProperty(['headers', 'retry-after'], '7')
    expect(replies[299]).toMatchObject({ kind: 'answer', status: 200, body: '/299' })
    expect(provider.connections()).toBe(1)
  })

  test('without a body is whole as well', async () => {
    const { client } = await start({ accept: () => ({ status: 201 }) })
    expect(await post(client, '/a')).toMatchObject({ kind: 'answer', status: 201, body: '' })
  })

  test('that is slow holds up nobody else', async () => {
    const { provider, client } = await start()
    provider.script('/slow', { status: 200, afterMs: 300 })
    const order: string[] = []
    const noted = (path: string) => post(client, path).then((reply) => order.push(`${path} ${reply.kind}`))
    await Promise.all([noted('/slow'), noted('/quick')])
    expect(order).toEqual(['/quick answer', '/slow answer'])
  })

  test('is cut at 64 kB: the status has said all', async () => {
    const { client } = await start({ accept: () => ({ status: 200, body: 'x'.repeat(1_000_000) }) })
    const reply = await post(client, '/a')
    expect(reply).toMatchObject({ kind: 'answer', status: 200 })
    expect(reply.kind === 'answer' && reply.body.length).toBeLessThanOrEqual(65_536)
    expect(reply.kind === 'answer' && reply.body.length).toBeGreaterThan(0)
  })
})

describe('the limits of the other side', () => {
  test('are kept: no more streams at once than it allows, and more connections instead', async () => {
    const { provider, client } = await start({ maxStreams: 5 }, { maxSessions: 3 })
    const replies = await postMany(client, 200)
    expect(new Set(kinds(replies))).toEqual(new Set(['answer']))
    expect(provider.mostAtOnce()).toBeLessThanOrEqual(15)
    expect(provider.connections()).toBeLessThanOrEqual(3)
    expect(provider.connections()).toBeGreaterThan(1)
    expect([...provider.taken.values()]).toEqual(Array(200).fill(1))
  })

  test('may be narrow until the first answer, which is no reason for more connections', async () => {
    const { provider, client } = await start({ firstStreams: 1, maxStreams: 1000 })
    provider.script('/0', { status: 200, afterMs: 300 })
    expect(new Set(kinds(await postMany(client, 200)))).toEqual(new Set(['answer']))
    expect(provider.connections()).toBe(1)
    expect(provider.mostAtOnce()).toBeGreaterThan(1)
  })
})

describe('a request that was not taken up', () => {
  test('because nobody listens is unsent', async () => {
    const { provider, client } = await start()
    await provider.close()
    expect(await post(client, '/a')).toEqual({ kind: 'unsent', cause: 'connection', reason: 'connection refused' })
  })

  test('because the certificate is not trusted, or for another name, is unsent', async () => {
    const { provider } = await start()
    const distrustful = connectTo(provider, { route: { connect: provider.route.connect } })
    const reason = 'certificate not trusted'
    expect(await post(distrustful, '/a')).toEqual({ kind: 'unsent', cause: 'connection', reason })
    const { port } = provider
    const misled = connectTo(provider, {
      route: { ca: provider.route.ca, connect: { 'https://other.example.com': { host: '127.0.0.1', port } } },
    })
    expect(await post(misled, '/a', 'https://other.example.com')).toEqual({
      kind: 'unsent',
      cause: 'connection',
      reason,
    })
    expect(provider.requests()).toBe(0)
  })

  test('because its stream was refused is asked again, once, and the connection serves on', async () => {
    const { provider, client } = await start()
    provider.script('/a', 'refuse')
    expect(await post(client, '/a')).toMatchObject({ kind: 'answer' })
    expect(provider.taken.get('/a')).toBe(1)
    provider.script('/a', 'refuse', 'refuse')
    expect(await post(client, '/a')).toEqual({ kind: 'unsent', cause: 'stream', reason: 'stream refused' })
    expect(await post(client, '/a')).toMatchObject({ kind: 'answer' })
    expect(provider.connections()).toBe(1)
  })

  test('because the other side said goodbye before it goes by another connection; those before it are answered', async () => {
    const { provider, client } = await start()
    await post(client, '/first')
    provider.script('/50', 'goaway')
    const replies = await postMany(client, 100)
    expect(kinds(replies)).toEqual(Array(100).fill('answer'))
    expect(replies.map((_, n) => provider.taken.get(`/${n}`))).toEqual(Array(100).fill(1))
    expect(await post(client, '/again')).toMatchObject({ kind: 'answer' })
    expect(provider.connections()).toBe(2)
  })

  test('because the other side broke off before it goes by another connection, though those before it are lost', async () => {
    const { provider, client } = await start()
    await post(client, '/first')
    for (let n = 0; n < 20; n++) provider.script(`/${n}`, 'hang')
    provider.script('/20', 'goaway with error')
    const replies = await postMany(client, 40)
    expect(kinds(replies)).toEqual([...Array(20).fill('lost'), ...Array(20).fill('answer')])
    expect(await post(client, '/again')).toMatchObject({ kind: 'answer' })
  })

  test('because there was no place for it in time is unsent', async () => {
    const { provider, client } = await start({ maxStreams: 1 }, { deadlineMs: 1_500, maxSessions: 1 })
    provider.script('/a', 'hang')
    const [hung, waited] = await Promise.all([post(client, '/a'), post(client, '/b')])
    expect(hung).toEqual({ kind: 'lost', reason: 'no answer in time' })
    expect(waited).toEqual({ kind: 'unsent', cause: 'time', reason: 'no connection in time' })
    expect(provider.taken.get('/b')).toBeUndefined()
  })

  test('because the other side never shakes hands is unsent', async () => {
    const mute = createServer(() => {})
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { port } = mute.address() as AddressInfo
    const client = createPushHttpClient({
      route: { connect: { [ORIGIN]: { host: '127.0.0.1', port } } },
      connectMs: 200,
    })
    open.push(client)
    expect(await post(client, '/a')).toMatchObject({ kind: 'unsent', cause: 'connection' })
    mute.close()
  })

  test('because it leads into our own network is unsent, and no connection was made', async () => {
    const { provider, client } = await start()
    for (const origin of [
      `https://127.0.0.1:${provider.port}`,
      'https://[::1]:8443',
      'https://10.0.0.1',
      'https://[::ffff:7f00:1]',
    ])
      expect(await post(client, '/a', origin), origin).toMatchObject({ kind: 'unsent', cause: 'address' })
    expect(provider.connections()).toBe(0)
  })
})

describe('a request that was taken up and not answered is lost', () => {
  test.each(['reset', 'half', 'cut'] as const)('after %s', async (failure) => {
    const { provider, client } = await start()
    provider.script('/a', failure)
    expect(await post(client, '/a')).toMatchObject({ kind: 'lost' })
    expect(provider.taken.get('/a')).toBe(1)
    expect(await post(client, '/b')).toMatchObject({ kind: 'answer' })
  })

  test('when its time is over; the next one goes by another connection', async () => {
    const { provider, client } = await start({}, { deadlineMs: 1_500 })
    provider.script('/a', 'hang')
    expect(await post(client, '/a')).toEqual({ kind: 'lost', reason: 'no answer in time' })
    expect(await post(client, '/b')).toMatchObject({ kind: 'answer' })
    expect(provider.connections()).toBe(2)
  })

  test('all of those on a connection that is cut, and no other', async () => {
    const { provider, client } = await start()
    for (let n = 0; n < 20; n++) provider.script(`/${n}`, 'hang')
    provider.script('/20', 'cut')
    const replies = await postMany(client, 21)
    expect(new Set(kinds(replies))).toEqual(new Set(['lost']))
    expect(await post(client, '/b')).toMatchObject({ kind: 'answer' })
  })
})

describe('what the network says is told in words of ours', () => {
  test.each([
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'identity'],
    ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'identity'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'identity'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'connection'],
    ['CERT_HAS_EXPIRED', 'connection'],
    ['ENOTFOUND', 'connection'],
    ['ECONNRESET', 'connection'],
  ])('%s', (code, cause) => {
    const error = Object.assign(new Error(`connect ${code} 203.0.113.7:443`), { code })
    expect(describeConnectFailure(error)).toEqual({
      kind: 'unsent',
      cause,
      reason: expect.not.stringContaining('203.0.113.7'),
    })
  })
})

describe('a service without HTTP/2', () => {
  const http1 = { isHttp1: true }

  test('is spoken to in HTTP/1.1, over connections that are kept', async () => {
    const { provider, client } = await start(http1, { allowsHttp1: true })
    for (let n = 0; n < 3; n++)
      expect(await post(client, '/a')).toMatchObject({ kind: 'answer', status: 200, body: '/a' })
    expect(provider.connections()).toBe(1)
    expect(new Set(kinds(await postMany(client, 100)))).toEqual(new Set(['answer']))
    expect(provider.connections()).toBeLessThanOrEqual(33)
  })

  test('tells lost from unsent as well', async () => {
    const { provider, client } = await start(http1, { allowsHttp1: true, deadlineMs: 1_500 })
    provider.script('/a', 'cut', 'hang')
    expect(await post(client, '/a')).toEqual({ kind: 'lost', reason: 'connection lost' })
    expect(await post(client, '/a')).toEqual({ kind: 'lost', reason: 'no answer in time' })
    expect(await post(client, '/b')).toMatchObject({ kind: 'answer' })
    await provider.close()
    // It may go out on a connection of which nobody knows yet that it is closed.
    expect((await post(client, '/b')).kind).not.toBe('answer')
    expect(await post(client, '/b')).toMatchObject({ kind: 'unsent', cause: 'connection' })
  })

  test('is left alone where HTTP/2 is a must', async () => {
    const { client } = await start(http1)
    expect(await post(client, '/a')).toMatchObject({ kind: 'unsent', cause: 'connection' })
  })
})

describe('connections of an app', () => {
  const [hostile, other] = ['hostile', 'other']
  /** However slow the machine is. */
  const patient = { deadlineMs: 120_000, connectMs: 60_000 }
  const postAs = (client: PushHttpClient, appId: string, path: string, origin = ORIGIN) =>
    post(client, path, origin, appId)
  const postManyAs = (client: PushHttpClient, appId: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => postAs(client, appId, `/${appId}/${n}`)))

  test.each(['cut', 'half', 'goaway with error'] as const)(
    'that end in %s carry nothing of another',
    async (failure) => {
      const { provider, client } = await start({}, patient)
      const slow = { status: 200, afterMs: 200 }
      for (let n = 0; n < 40; n++) provider.script(`/${other}/${n}`, slow)
      provider.script(`/${hostile}/0`, failure, failure)
      const [replies] = await Promise.all([postManyAs(client, other, 40), postManyAs(client, hostile, 1)])
      expect(kinds(replies)).toEqual(Array(40).fill('answer'))
    },
  )

  test('that are flooded with answers lose no request of another', async () => {
    const { provider, client } = await start({}, patient)
    for (let n = 0; n < 300; n++) provider.script(`/${hostile}/${n}`, 'garbage')
    const flooded = postManyAs(client, hostile, 300)
    expect(kinds(await postManyAs(client, other, 40))).toEqual(Array(40).fill('answer'))
    await flooded
  })

  test('whose streams all hang leave another its streams', async () => {
    const { provider, client } = await start({ maxStreams: 2 }, { ...patient, maxSessions: 1 })
    for (let n = 0; n < 20; n++) provider.script(`/${hostile}/${n}`, 'hang')
    const hung = postManyAs(client, hostile, 20)
    expect(kinds(await postManyAs(client, other, 20))).toEqual(Array(20).fill('answer'))
    await provider.close()
    await hung
  })

  test('are opened a few at a time, so that another need not wait for the end of hundreds', async () => {
    const hosts = Array.from({ length: 30 }, (_, n) => `push${n}.example.com`)
    const { client } = await start({ hosts }, { ...patient, maxConnectingOfApp: 2 })
    const order: string[] = []
    const ask = async (appId: string, host: string) => {
      const reply = await postAs(client, appId, '/a', `https://${host}`)
      expect(reply).toMatchObject({ kind: 'answer' })
      order.push(appId)
    }
    const flood = hosts.map((host) => ask(hostile, host))
    await ask(other, hosts[0] as string)
    expect(order.length).toBeLessThan(10)
    await Promise.all(flood)
    expect(order).toHaveLength(31)
  })

  test('are bounded, at its own cost', async () => {
    const hosts = Array.from({ length: 12 }, (_, n) => `push${n}.example.com`)
    const { provider, client } = await start({ hosts }, { ...patient, maxPeers: 8, maxPeersOfApp: 5 })
    const origins = hosts.map((host) => `https://${host}`)
    const [first = ''] = origins
    const openAll = async (appId: string, some: readonly string[]) => {
      for (const origin of some) expect(await postAs(client, appId, '/a', origin)).toMatchObject({ kind: 'answer' })
    }
    await openAll(other, [first])
    await openAll(hostile, origins)
    await expect.poll(() => provider.open()).toBe(1 + 5)
    await openAll('third', origins)
    await expect.poll(() => provider.open()).toBe(8)
    const before = provider.connections()
    await openAll(other, [first])
    expect(provider.connections()).toBe(before)
  })
})

describe('connections', () => {
  test('that ended before anybody listened are no connections', async () => {
    const socket = new TLSSocket(new Socket())
    socket.destroy()
    await once(socket, 'close')
    const settings = { onChange() {}, pingMs: 1_000, idleMs: 1_000, timeoutMs: 1_000 }
    await expect(openHttp2Connection(ORIGIN, socket, settings)).rejects.toThrow('closed')
  })

  test('are let go when nothing was asked of them for long, and opened again', async () => {
    const { provider, client } = await start({}, { pingMs: 20, idleMs: 60 })
    await post(client, '/a')
    await expect.poll(() => provider.open()).toBe(0)
    expect(await post(client, '/a')).toMatchObject({ kind: 'answer' })
  })

  test('that answer no ping are dropped before a request is lost on them', async () => {
    const { provider } = await start()
    const relay = await startRelay(provider.port)
    const route = { ca: provider.route.ca, connect: { [ORIGIN]: { host: '127.0.0.1', port: relay.port } } }
    const client = connectTo(provider, { route, pingMs: 100 })
    await post(client, '/a')
    relay.forget()
    await expect.poll(() => relay.open()).toBe(0)
    expect(await post(client, '/a')).toMatchObject({ kind: 'answer' })
    expect(provider.connections()).toBe(2)
  })

  test('are closed after what is under way; what comes later is unsent', async () => {
    const { provider, client } = await start({ maxStreams: 3 })
    const replies = postMany(client, 50)
    await client.close()
    expect(new Set(kinds(await replies))).toEqual(new Set(['answer']))
    expect(await post(client, '/late')).toEqual({ kind: 'unsent', cause: 'closing', reason: 'closing' })
    await expect.poll(() => provider.open()).toBe(0)
  })
})

/** A network that can forget its connections: both ends stay open, and nothing gets through. */
async function startRelay(port: number) {
  const pairs = new Set<{ from: Socket; to: Socket }>()
  const server = createServer((from) => {
    const pair = { from, to: connect(port, '127.0.0.1') }
    pairs.add(pair)
    from.pipe(pair.to).pipe(from)
    for (const socket of [from, pair.to]) socket.on('error', () => {})
    from.on('close', () => {
      pairs.delete(pair)
      pair.to.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push({
    close: async () => {
      for (const { from } of pairs) from.destroy()
      server.close()
    },
  })
  return {
    port: (server.address() as AddressInfo).port,
    open: () => pairs.size,
    forget() {
      for (const { from, to } of pairs) {
        from.unpipe(to).resume()
        to.unpipe(from).resume()
      }
    },
  }
}
