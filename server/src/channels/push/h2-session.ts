// One HTTP/2 connection: as many requests at once as the other side allows, and of each what became of it.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { lost, type Reply, unsent } from './reply.ts'
import { MOST_ANSWER_BYTES, type Session } from './session.ts'

/** Nobody allows more than this in earnest. */
const MOST_STREAMS = 1000
type Settings = {
  /** A place is free, the limits are others, or it is over. */
  onChange(): void
  /** How long nothing may have been heard before we ask whether anybody is there. */
  pingMs: number
  /** After so long without a request the connection is let go. */
  idleMs: number
  timeoutMs: number
}

/** Waits for the other side's settings: a request sent before them could break its limits. */
export function openH2Session(origin: string, socket: TLSSocket, settings: Settings): Promise<Session> {
  const session = connect(origin, { createConnection: () => socket, settings: { enablePush: false } })
  let failure: Error | undefined
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => session.destroy(new Error('timeout')), settings.timeoutMs)
    session.on('error', (error) => {
      failure ??= error
    })
    socket.on('error', (error) => {
      failure ??= error
    })
    const onClose = () => {
      clearTimeout(timer)
      reject(failure ?? new Error('closed'))
    }
    session.once('close', onClose)
    session.once('remoteSettings', () => {
      clearTimeout(timer)
      session.off('close', onClose)
      resolve(watch(session, settings))
    })
  })
}

function watch(session: ClientHttp2Session, { onChange, pingMs, idleMs }: Settings): Session {
  let isOpen = true
  let inFlight = 0
  let answered = 0
  let lastTaken = Number.POSITIVE_INFINITY
  let silentTicks = 0
  let idleTicks = 0

  const over = () => {
    clearInterval(ticker)
    isOpen = false
    onChange()
  }
  session.on('goaway', (_code, lastStreamId) => {
    isOpen = false
    lastTaken = Math.min(lastTaken, lastStreamId)
    onChange()
  })
  session.on('close', over)
  session.on('remoteSettings', onChange)

  const heard = () => {
    silentTicks = 0
  }
  // A connection that died without a word (a NAT that forgot it) would swallow the next requests.
  const ticker = setInterval(() => {
    idleTicks = inFlight === 0 ? idleTicks + 1 : 0
    if (idleTicks * pingMs >= idleMs) session.close()
    else if (silentTicks++ > 0) session.destroy()
    else if (!session.destroyed) session.ping((error) => (error ? undefined : heard()))
  }, pingMs)
  ticker.unref()

  const limit = () => Math.min(session.remoteSettings.maxConcurrentStreams ?? MOST_STREAMS, MOST_STREAMS)

  return {
    free: () => (isOpen && !session.closed ? Math.max(0, limit() - inFlight) : 0),
    isOpen: () => isOpen && !session.closed,
    isIdle: () => inFlight === 0,
    // A new connection may take one request until it has seen who we are; to open more then would be rude.
    wantsAnother: () => answered > 0,
    send(request, deadlineMs, done) {
      let stream: ClientHttp2Stream
      try {
        stream = session.request({
          ':method': 'POST',
          ':path': request.path,
          'content-length': Buffer.byteLength(request.body),
          ...request.headers,
        })
      } catch {
        // Closed in this moment, or out of numbers for streams.
        isOpen = false
        session.close()
        done(unsent('stream', 'connection closing'))
        return
      }
      inFlight++
      const before = answered
      follow(stream, deadlineMs, (reply) => {
        inFlight--
        if (reply.kind === 'answer') {
          answered++
          heard()
        } else if (reply.kind === 'lost' && answered === before) {
          // Nobody was heard all that time; what comes next shall not be lost as well.
          isOpen = false
          session.close()
        }
        done(reply)
        onChange()
      })
      stream.end(request.body)
    },
    close: () => session.close(),
  }

  function follow(stream: ClientHttp2Stream, deadlineMs: number, done: (reply: Reply) => void) {
    let headers: Record<string, string | string[] | undefined> | undefined
    let body: Buffer | undefined
    let isLate = false
    let isWhole = false
    const timer = setTimeout(() => {
      isLate = true
      stream.close(constants.NGHTTP2_CANCEL)
    }, deadlineMs)
    stream.on('response', (it, flags) => {
      headers = it as typeof headers
      // Most answers have no body; then there is nothing to wait for.
      if (flags & constants.NGHTTP2_FLAG_END_STREAM) {
        isWhole = true
        stream.resume()
        return
      }
      stream.on('data', (chunk: Buffer) => {
        if (body !== undefined && body.length + chunk.length > MOST_ANSWER_BYTES) {
          isWhole = true
          stream.close(constants.NGHTTP2_CANCEL)
        } else body = body === undefined ? chunk : Buffer.concat([body, chunk])
      })
      // A stream that was broken off ends too; its code tells.
      stream.on('end', () => {
        isWhole ||= !stream.rstCode && !stream.aborted
      })
    })
    stream.on('error', () => {})
    stream.on('close', () => {
      clearTimeout(timer)
      done(judge())
    })

    function judge(): Reply {
      if (isWhole && headers)
        return { kind: 'answer', status: Number(headers[':status']), headers, body: body?.toString('utf8') ?? '' }
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return unsent('stream', 'stream refused')
      if (stream.id !== undefined && stream.id > lastTaken) return unsent('stream', 'connection closing')
      if (isLate) return lost('no answer in time')
      return lost(session.destroyed ? 'connection lost' : 'stream reset')
    }
  }
}
