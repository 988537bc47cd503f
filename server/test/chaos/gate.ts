// A door on the way to a provider, behind which somebody else may be from one moment to the next; and two who only pretend to be
// what was asked for: their certificate is good, but for another name.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { certificateFor, certificatesByName } from '../../src/sink/certificate.ts'
import { listenSmtp } from '../../src/sink/email/smtp.ts'

export type Gate = {
  port: number
  /** Whoever is there now has to go. */
  leadTo(port: number): void
  close(): Promise<void>
}

export async function openGate(port: number): Promise<Gate> {
  const open = new Set<Socket>()
  let target = port
  const join = (one: Socket, other: Socket) => {
    open.add(one)
    one.setNoDelay(true)
    one.on('error', () => {})
    one.on('close', () => {
      open.delete(one)
      other.destroySoon()
    })
    one.pipe(other)
  }
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    join(near, far)
    join(far, near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const empty = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(port) {
      target = port
      empty()
    },
    async close() {
      server.close()
      empty()
      await once(server, 'close')
    },
  }
}

export type Impostor = { port: number; heard(): number; close(): Promise<void> }

const contextFor = certificatesByName()
const STRANGER = 'stranger.example'

/** Counts the bytes that it is told. */
export async function openImpostor(): Promise<Impostor> {
  let heard = 0
  const server = createTlsServer({
    ...certificateFor(),
    ALPNCallback: ({ protocols }) => protocols[0],
    SNICallback: (_name, done) => done(null, contextFor(STRANGER)),
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      heard += bytes.length
    })
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    heard: () => heard,
    async close() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Counts what came after STARTTLS: senders, recipients and mails. */
export async function openMailImpostor(): Promise<Impostor> {
  let heard = 0
  const server = await listenSmtp({
    tls: { ...certificateFor(), contextFor: () => contextFor(STRANGER) },
    meet(stage) {
      if (['mail', 'rcpt', 'data', 'message'].includes(stage)) heard++
      return undefined
    },
    async take() {
      heard++
      return true
    },
  })
  return { port: server.port, heard: () => heard, close: server.close }
}
