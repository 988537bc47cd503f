// The push back end of Chromium: it checks in and registers over HTTP, and keeps a TLS connection (MCS) on which messages
// come. On the side of the sender it is RFC 8030, at the address that Chromium gives to pages.

import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { Clock } from '../../src/lib/clock.ts'
import { certificateFor } from '../../src/sink/certificate.ts'
import { checkWebPush, webPushRefusal } from '../../src/sink/push/check-web-push.ts'
import { type ScriptedProvider, startProvider } from '../sinks/scripted.ts'
import { bytes, fixed64, number, readVarint, varint } from './protobuf.ts'

export type Gcm = {
  /** Switches that lead Chromium here. */
  switches: string[]
  route: ScriptedProvider['route']
  corruptNext(): void
  close(): Promise<void>
}

/** Builds of Chromium without Google's brand; the branded ones have fcm.googleapis.com. */
const HOST = 'jmt17.google.com'
const ORIGIN = `https://${HOST}`

type Registration = { app: string; subtype: string; sender: string }

/** Kinds of MCS messages. */
const HEARTBEAT_PING = 0
const HEARTBEAT_ACK = 1
const LOGIN_REQUEST = 2
const LOGIN_RESPONSE = 3
const DATA_MESSAGE = 8
const MCS_VERSION = 41

export async function startGcm(clock: Clock): Promise<Gcm> {
  const registrations = new Map<string, Registration>()
  const links = new Set<Link>()
  /** What came while Chromium was not connected. */
  const kept: Buffer[] = []
  let isNextCorrupt = false

  const http = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url?.startsWith('/checkin')) {
        response.setHeader('content-type', 'application/x-protobuffer')
        const nowMs = clock.now().getTime()
        response.end(
          Buffer.concat([
            number(1, 1),
            number(3, nowMs),
            number(6, 1),
            fixed64(7, 0x1234567890n),
            fixed64(8, 0x987654n),
          ]),
        )
      } else response.end(register(new URLSearchParams(Buffer.concat(chunks).toString())))
    })
  })

  function register(form: URLSearchParams): string {
    const [app, subtype, sender] = ['app', 'X-subtype', 'sender'].map((name) => form.get(name) ?? '') as [
      string,
      string,
      string,
    ]
    if (form.has('delete')) {
      for (const [token, it] of registrations) if (it.subtype === subtype) registrations.delete(token)
      return `deleted=${app}`
    }
    const token = `${randomBytes(8).toString('base64url')}:APA91b${randomBytes(48).toString('base64url')}`
    registrations.set(token, { app, subtype, sender })
    return `token=${token}`
  }

  const mcs = createTlsServer(certificateFor('localhost'), (socket) => {
    const link = startLink(socket, (kind) => {
      if (kind === HEARTBEAT_PING) link.send(HEARTBEAT_ACK, Buffer.alloc(0))
      if (kind !== LOGIN_REQUEST) return
      link.send(LOGIN_RESPONSE, Buffer.concat([bytes(1, 'login-1'), number(5, 1), number(8, clock.now().getTime())]))
      links.add(link)
      for (const message of kept.splice(0)) link.send(DATA_MESSAGE, message)
    })
    socket.on('close', () => links.delete(link))
  })

  function messageFor({ app, subtype, sender }: Registration, body: Buffer): Buffer {
    const pair = (name: string, value: string) => bytes(7, Buffer.concat([bytes(1, name), bytes(2, value)]))
    const nowMs = clock.now().getTime()
    return Buffer.concat([
      bytes(3, sender),
      bytes(4, app),
      bytes(5, app),
      pair('subtype', subtype),
      pair('content-encoding', 'aes128gcm'),
      bytes(9, `0:${nowMs}%${randomBytes(8).toString('hex')}`),
      number(17, 60),
      number(18, nowMs),
      bytes(21, body),
    ])
  }

  const tokenIn = (path: string) => decodeURIComponent(path.split('/').at(-1) as string)
  const provider = await startProvider({ hosts: [HOST] }, () => ({
    addressOf: ({ path }) => path,
    check(request) {
      const registration = registrations.get(tokenIn(request.path))
      return registration
        ? checkWebPush(request, keyIn(registration), clock.now())
        : webPushRefusal(404, 'no such subscription')
    },
    accept({ path, body }) {
      const data = Buffer.from(body)
      if (isNextCorrupt) data[data.length - 1] = (data.at(-1) as number) ^ 1
      isNextCorrupt = false
      const message = messageFor(registrations.get(tokenIn(path)) as Registration, data)
      if (links.size === 0) kept.push(message)
      for (const link of links) link.send(DATA_MESSAGE, message)
      return { status: 201, headers: { location: `${ORIGIN}/m/1` } }
    },
  }))

  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  await new Promise<void>((resolve) => mcs.listen(0, '127.0.0.1', resolve))
  const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port
  return {
    switches: [
      `--gcm-checkin-url=http://127.0.0.1:${portOf(http)}/checkin`,
      `--gcm-registration-url=http://127.0.0.1:${portOf(http)}/register`,
      `--gcm-mcs-endpoint=https://127.0.0.1:${portOf(mcs)}`,
      '--ignore-certificate-errors',
    ],
    route: provider.route,
    corruptNext() {
      isNextCorrupt = true
    },
    async close() {
      for (const { socket } of links) socket.destroy()
      mcs.close()
      http.close()
      http.closeAllConnections()
      await provider.close()
    },
  }
}

/** Chromium names the key of the subscription as the sender. */
const keyIn = ({ sender }: Registration) => Buffer.from(sender, 'base64url')

type Link = { socket: TLSSocket; send(kind: number, message: Buffer): void }

/** Frames: a version before the first, then kind, length, message. */
function startLink(socket: TLSSocket, onMessage: (kind: number) => void): Link {
  let received = Buffer.alloc(0)
  let hasVersion = false
  let hasSent = false
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (!hasVersion) received = received.subarray(1)
    hasVersion = true
    for (;;) {
      const length = readVarint(received, 1)
      if (!length || received.length < length.end + length.value) return
      const kind = received[0] as number
      received = received.subarray(length.end + length.value)
      onMessage(kind)
    }
  })
  return {
    socket,
    send(kind, message) {
      const version = hasSent ? [] : [MCS_VERSION]
      hasSent = true
      socket.write(Buffer.concat([Buffer.from([...version, kind]), varint(message.length), message]))
    },
  }
}
