// One HTTP/2 connection to a provider, with as many concurrent requests as the peer allows. Dead connections are
// detected by pings.

import type { TLSSocket } from 'node:tls'
import { createHttp2Connection } from '../h2/connection.ts'
import type { HttpConnection } from './connection.ts'
import { unsent } from './exchange.ts'

/** No provider really allows more than this. */
const MOST_STREAMS = 1000

type Http2ConnectionSettings = {
  /** A slot became free, the limits changed, or the connection ended. */
  onChange(): void
  /** After this time without any data, a ping checks whether the peer still responds. */
  pingMs: number
  /** After this time without a request, the connection is closed. */
  idleMs: number
  timeoutMs: number
}

/** Waits for the peer's settings: a request that is sent before them could exceed the peer's limits. */
export function openHttp2Connection(
  origin: string,
  socket: TLSSocket,
  settings: Http2ConnectionSettings,
): Promise<HttpConnection> {
  const { onChange, pingMs, idleMs, timeoutMs } = settings
  return new Promise((resolve, reject) => {
    // A socket that closed between the handshake and this call emits no further events.
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

    // A connection that died silently (for instance because a NAT forgot it) would swallow the next requests.
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
      // A provider may accept only one request on a new connection until it has authenticated us. Opening more
      // connections just for that would be abuse.
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
              // No answer at all arrived during this time, so the connection is given up before more requests are lost.
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
