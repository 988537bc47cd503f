// One HTTP/2 connection to a provider: as many requests at once as the other side allows, watched over.

import type { TLSSocket } from 'node:tls'
import { createHttp2Connection } from '../h2/connection.ts'
import type { HttpConnection } from './connection.ts'
import { unsent } from './exchange.ts'

/** Nobody allows more than this in earnest. */
const MOST_STREAMS = 1000

type Http2ConnectionSettings = {
  /** A place is free, the limits are others, or it is over. */
  onChange(): void
  /** How long nothing may have been heard before we ask whether anybody is there. */
  pingMs: number
  /** After so long without a request the connection is let go. */
  idleMs: number
  timeoutMs: number
}

/** Waits for the other side's settings: a request sent before them could break its limits. */
export function openHttp2Connection(
  origin: string,
  socket: TLSSocket,
  settings: Http2ConnectionSettings,
): Promise<HttpConnection> {
  const { onChange, pingMs, idleMs, timeoutMs } = settings
  return new Promise((resolve, reject) => {
    // What ended between its handshake and now says so to nobody any more.
    if (socket.destroyed) return reject(new Error('closed'))
    let failure: Error | undefined
    let answered = 0
    let silentTicks = 0
    let idleTicks = 0
    let isReady = false

    const timer = setTimeout(() => socket.destroy(new Error('timeout')), timeoutMs)
    socket.on('error', (error) => {
      failure ??= error
    })
    const connection = createHttp2Connection(new URL(origin).host, socket, {
      onSettings() {
        clearTimeout(timer)
        if (isReady) return onChange()
        isReady = true
        resolve(session)
      },
      onSound() {
        silentTicks = 0
      },
      onLeaving: onChange,
      onClose() {
        clearTimeout(timer)
        clearInterval(ticker)
        if (!isReady) reject(failure ?? new Error('closed'))
        onChange()
      },
    })

    // A connection that died without a word (a NAT that forgot it) would swallow the next requests.
    const ticker = setInterval(() => {
      idleTicks = connection.inFlight() === 0 ? idleTicks + 1 : 0
      if (idleTicks * pingMs >= idleMs) connection.close()
      else if (silentTicks++ > 0) connection.destroy()
      else connection.ping()
    }, pingMs)
    ticker.unref()

    const session: HttpConnection = {
      freeSlots: () =>
        connection.isOpen() ? Math.max(0, Math.min(connection.maxStreams(), MOST_STREAMS) - connection.inFlight()) : 0,
      isOpen: connection.isOpen,
      isIdle: () => connection.inFlight() === 0,
      // A new connection may take one request until it has seen who we are; to open more then would be rude.
      allowsAnother: () => answered > 0,
      send({ path, headers, body }, deadlineMs, done) {
        if (!connection.isOpen()) return done(unsent('stream', 'connection closing'))
        const before = answered
        connection.post(
          { path, headers, body: typeof body === 'string' ? Buffer.from(body) : body },
          {
            deadlineMs,
            done(reply) {
              if (reply.kind === 'answer') answered++
              // Nobody was heard all that time; what comes next shall not be lost as well.
              else if (reply.kind === 'lost' && answered === before) connection.close()
              done(reply)
              onChange()
            },
          },
        )
      },
      close: connection.close,
    }
  })
}
