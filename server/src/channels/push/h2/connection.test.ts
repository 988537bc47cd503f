// The other side is node:http2, which is nghttp2: an independent reader and writer of the protocol. What it would never do
// is written by hand.

import { createServer, type Http2Server, type ServerHttp2Stream, type Settings } from 'node:http2'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { ProviderReply } from '../http/exchange.ts'
import { createHttp2Connection, type Http2Connection } from './connection.ts'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0).reverse()) close()
})

type Request = { headers: Record<string, unknown>; body: string; stream: ServerHttp2Stream }
type Answer = (request: Request) => void

async function listening(server: { listen(port: number, host: string, done: () => void): unknown }) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server as unknown as { address(): AddressInfo }).address().port
}

async function dial(port: number): Promise<Http2Connection & { closed: Promise<void> }> {
  const ready = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  const socket = connect(port, '127.0.0.1')
  open.push(() => socket.destroy())
  const connection = createHttp2Connection('push.example.com', socket, {
    onSettings: ready.resolve,
    onSound() {},
    onLeaving() {},
    onClose: closed.resolve,
  })
  await Promise.race([ready.promise, closed.promise])
  return { ...connection, closed: closed.promise }
}

async function serve(answer: Answer, settings: Settings = {}) {
  const server: Http2Server = createServer({ settings })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => answer({ headers, body: Buffer.concat(chunks).toString(), stream }))
  })
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => sessions.add(session))
  const port = await listening(server)
  open.push(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { connection: await dial(port), sessions: sessions as Set<import('node:http2').ServerHttp2Session> }
}

const post = (connection: Http2Connection, path: string, body = 'hello', headers: Record<string, string> = {}) =>
  new Promise<ProviderReply>((done) =>
    connection.post({ path, headers, body: Buffer.from(body) }, { deadlineMs: 5_000, done }),
  )

const echo: Answer = ({ headers, body, stream }) => {
  const { ':path': path, ...rest } = headers
  const sent = Object.entries(rest).filter(([name]) => name.startsWith('x-'))
  stream.respond({ ':status': 200, 'x-path': String(path), ...(Object.fromEntries(sent) as Record<string, string>) })
  stream.end(body)
}

describe('headers', () => {
  const value = fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/)
  const headers = fc.dictionary(fc.stringMatching(/^x-[a-z]{1,10}$/), value, { maxKeys: 12 })

  test.each([4096, 0, 100, 65_536])('come and go unchanged, with a table of %i bytes', async (headerTableSize) => {
    const { connection } = await serve(echo, { headerTableSize })
    await fc.assert(
      fc.asyncProperty(fc.array(headers, { minLength: 1, maxLength: 8 }), async (requests) => {
        const replies = await Promise.all(requests.map((it, n) => post(connection, `/${n}`, '', it)))
        for (const [n, reply] of replies.entries())
          expect(reply).toMatchObject({ kind: 'answer', status: 200, headers: { 'x-path': `/${n}`, ...requests[n] } })
      }),
      { numRuns: 40 },
    )
  })

  test('that are long, and so many that the other side needs several frames, are read', async () => {
    const long = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`x-long-${n}`, 'é'.repeat(10) + 'z'.repeat(1000)]),
    )
    const ascii = Object.fromEntries(Object.entries(long).map(([name, it]) => [name, it.replaceAll('é', '~')]))
    const { connection } = await serve(({ stream }) => {
      stream.respond({ ':status': 200, ...ascii })
      stream.end()
    })
    expect(await post(connection, '/a')).toMatchObject({ kind: 'answer', status: 200, headers: ascii })
  })

  test('before and after the answer are no answer', async () => {
    const { connection } = await serve(({ stream }) => {
      stream.additionalHeaders({ ':status': 103, link: '<x>' })
      stream.respond({ ':status': 202 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-late': 'y' }))
      stream.end('body')
    })
    const reply = await post(connection, '/a')
    expect(reply).toMatchObject({ kind: 'answer', status: 202, body: 'body' })
  })
})

describe('bodies', () => {
  const sizes = [0, 1, 9, 10, 11, 1000, 16_384, 16_385, 70_000]

  test.each([10, 65_535, 1_000_000])('arrive whole through a window of %i bytes', async (initialWindowSize) => {
    const { connection } = await serve(
      ({ body, stream }) => {
        stream.respond({ ':status': 200, 'x-length': String(body.length) })
        stream.end()
      },
      { initialWindowSize },
    )
    const replies = await Promise.all(sizes.map((size) => post(connection, '/a', 'b'.repeat(size))))
    expect(replies.map((it) => it.kind === 'answer' && Number(it.headers['x-length']))).toEqual(sizes)
  })

  test('more than the window of the connection holds wait for room, in any number', async () => {
    const { connection } = await serve(echo)
    const replies = await Promise.all(
      Array.from({ length: 90 }, (_, n) => post(connection, `/${n}`, 'b'.repeat(4_000))),
    )
    expect(new Set(replies.map((it) => it.kind === 'answer' && it.body.length))).toEqual(new Set([4_000]))
  })

  test('of answers may be more than a window in all', async () => {
    const { connection } = await serve(({ stream }) => {
      stream.respond({ ':status': 200 })
      stream.end('a'.repeat(60_000))
    })
    for (let n = 0; n < 300; n += 50) {
      const replies = await Promise.all(Array.from({ length: 50 }, () => post(connection, '/a')))
      expect(new Set(replies.map((it) => it.kind === 'answer' && it.body.length))).toEqual(new Set([60_000]))
    }
  })
})

test('a ping is answered', async () => {
  const { connection, sessions } = await serve(echo)
  const [session] = sessions
  const error = await new Promise((resolve) => session?.ping((it) => resolve(it)))
  expect(error).toBeNull()
  expect(await post(connection, '/a')).toMatchObject({ kind: 'answer' })
})

test('what nobody waits for any more is not answered to anybody, and the next are', async () => {
  let late: ServerHttp2Stream | undefined
  const { connection } = await serve((request) => {
    if (request.headers[':path'] === '/late') late = request.stream
    else echo(request)
  })
  const reply = await new Promise<ProviderReply>((done) =>
    connection.post({ path: '/late', headers: {}, body: Buffer.from('') }, { deadlineMs: 30, done }),
  )
  expect(reply).toEqual({ kind: 'lost', reason: 'no answer in time' })
  expect(await post(connection, '/next', 'x', { 'x-a': 'b' })).toMatchObject({ headers: { 'x-a': 'b' } })
  expect(late?.destroyed).toBe(true)
})

describe('another side that does not keep to the protocol', () => {
  const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  const frame = (type: number, flags: number, streamId: number, payload: Buffer | number[]) => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(streamId, 5)
    return Buffer.concat([head, Buffer.from(payload)])
  }

  /** Says this as soon as a request has come. */
  async function sayTo(said: Buffer): Promise<ProviderReply> {
    const sockets: Socket[] = []
    const server = createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      socket.write(SETTINGS)
      socket.on('data', (chunk) => {
        if (chunk.includes('/marker')) socket.write(said)
      })
    })
    const port = await listening(server)
    open.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return post(await dial(port), '/marker')
  }

  test.each([
    ['an index that there is not', frame(1, 5, 1, [0xff, 0x80, 0x01])],
    ['an index of zero', frame(1, 5, 1, [0x80])],
    ['a string that ends before its length', frame(1, 5, 1, [0x40, 0x05, 0x61])],
    ['a number without an end', frame(1, 5, 1, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
    ['a table larger than we allow', frame(1, 5, 1, [0x3f, 0xff, 0xff, 0x03])],
    ['a Huffman code that is none', frame(1, 5, 1, [0x40, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00])],
    ['a Huffman code with too much padding', frame(1, 5, 1, [0x40, 0x82, 0x1f, 0xff, 0x00])],
    ['more padding than there is', frame(1, 0x0d, 1, [0x09, 0x88])],
    ['a frame larger than we allow', frame(0, 0, 1, Buffer.alloc(16_385))],
    ['headers that go on without a beginning', frame(9, 4, 1, [0x88])],
    ['headers that are broken off', Buffer.concat([frame(1, 0, 1, [0x88]), frame(6, 0, 0, Buffer.alloc(8))])],
    ['a push', frame(5, 4, 1, [0, 0, 0, 2, 0x88])],
    ['a reset too short to say why', frame(3, 0, 1, [0])],
    ['a goodbye too short to say when', frame(7, 0, 0, [0])],
    ['a window too large', frame(4, 0, 0, [0, 4, 0xff, 0xff, 0xff, 0xff])],
    ['HTTP/1.1', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ])('%s: the connection is given up, and the request is lost', async (_, said) => {
    expect(await sayTo(said)).toEqual({ kind: 'lost', reason: 'connection lost' })
  })

  /** Hands over what the client writes, frame by frame, and lets the test speak for the other side. */
  async function listenIn(settings: Buffer) {
    const seen: { type: number; flags: number; bytes: number }[] = []
    const arrived = new EventTarget()
    const sockets: Socket[] = []
    const server = createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      socket.write(settings)
      let bytes = Buffer.alloc(0)
      socket.on('data', (chunk) => {
        bytes = Buffer.concat([bytes, chunk])
        if (bytes.subarray(0, 3).toString() === 'PRI') bytes = bytes.subarray(24)
        while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
          const length = bytes.readUIntBE(0, 3)
          seen.push({ type: bytes[3] as number, flags: bytes[4] as number, bytes: length })
          bytes = bytes.subarray(9 + length)
        }
        arrived.dispatchEvent(new Event('chunk'))
      })
    })
    const port = await listening(server)
    open.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const connection = await dial(port)
    const bodyBytes = () => seen.filter(({ type }) => type === 0).reduce((sum, it) => sum + it.bytes, 0)
    return {
      connection,
      say: (said: Buffer) => sockets[0]?.write(said),
      bodyBytes,
      /** A ping goes after everything that was written before it. */
      async settled() {
        const before = seen.filter(({ type }) => type === 6).length
        connection.ping()
        while (seen.filter(({ type }) => type === 6).length === before)
          await new Promise((resolve) => arrived.addEventListener('chunk', resolve, { once: true }))
      },
      async until(bytes: number) {
        while (bodyBytes() < bytes)
          await new Promise((resolve) => arrived.addEventListener('chunk', resolve, { once: true }))
      },
    }
  }

  test('no more of all bodies is written than the connection has room for', async () => {
    const { connection, say, bodyBytes, settled, until } = await listenIn(SETTINGS)
    for (let n = 0; n < 20; n++) void post(connection, `/${n}`, 'b'.repeat(5_000))
    await settled()
    expect(bodyBytes()).toBe(65_535)
    say(frame(8, 0, 0, [0, 0, 0, 100]))
    await until(65_635)
    await settled()
    expect(bodyBytes()).toBe(65_635)
  })

  test('a window that grows or shrinks under way counts for what is under way', async () => {
    const windowOf = (bytes: number) => frame(4, 0, 0, [0, 4, 0, 0, bytes >> 8, bytes & 0xff])
    const { connection, say, bodyBytes, settled, until } = await listenIn(windowOf(1000))
    void post(connection, '/a', 'b'.repeat(5_000))
    await settled()
    expect(bodyBytes()).toBe(1000)
    say(windowOf(1500))
    await until(1500)
    say(windowOf(100))
    say(frame(8, 0, 1, [0, 0, 5, 0]))
    await settled()
    // 1,500 were written with a window that is now 100, and 1,280 more were granted.
    expect(bodyBytes()).toBeLessThanOrEqual(1500)
    say(frame(8, 0, 1, [0, 0, 1, 0]))
    await until(1636)
    await settled()
    expect(bodyBytes()).toBe(1636)
  })

  test('padding and priorities are taken off', async () => {
    const headers = frame(1, 0x2c, 1, [2, 0, 0, 0, 0, 9, 0x88, 0, 0])
    const data = frame(0, 0x9, 1, [1, 0x68, 0x69, 0])
    expect(await sayTo(Buffer.concat([headers, data]))).toMatchObject({ kind: 'answer', status: 200, body: 'hi' })
  })

  test('and comes byte by byte is understood all the same', async () => {
    const said = Buffer.concat([frame(1, 4, 1, [0x88]), frame(0, 1, 1, [0x68, 0x69])])
    const sockets: Socket[] = []
    const server = createTcpServer((socket) => {
      sockets.push(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.write(SETTINGS)
      socket.on('data', async (chunk) => {
        if (!chunk.includes('/marker')) return
        for (const byte of said) await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve))
      })
    })
    const port = await listening(server)
    open.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    expect(await post(await dial(port), '/marker')).toMatchObject({ kind: 'answer', status: 200, body: 'hi' })
  })
})
