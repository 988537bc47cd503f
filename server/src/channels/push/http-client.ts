// The one client of the push providers. Requests wait here, not in a connection, until there is a place for them: what never
// left is then known never to have left.

import type { Route } from '../channel.ts'
import { createH1Session } from './h1-session.ts'
import { openH2Session } from './h2-session.ts'
import { createOpenTls, explainUnreachable, type Identity } from './open-tls.ts'
import { type HttpRequest, type Reply, unsent } from './reply.ts'
import type { Session } from './session.ts'

export type ClientSettings = {
  route?: Route | undefined
  identity?: Identity | undefined
  /** Push services of browsers may know HTTP/1.1 only. */
  allowsHttp1?: boolean
  /** From being asked to having the whole answer; half of it at most is spent waiting for a place on a connection. */
  deadlineMs?: number
  connectMs?: number
  pingMs?: number
  idleMs?: number
  maxSessions?: number
}

export type HttpClient = {
  /** Never rejects. */
  request(request: HttpRequest): Promise<Reply>
  /** Waits for what is under way. */
  close(): Promise<void>
}

type Waiting = { request: HttpRequest; deadlineAt: number; timer?: NodeJS.Timeout; done(reply: Reply): void }
type Peer = {
  origin: string
  sessions: Session[]
  isConnecting: boolean
  /** In the order in which they came. */
  waiting: Set<Waiting>
}

/** Origins come from whoever subscribes; connections that nobody needs are closed when there are more than this. */
const MOST_PEERS = 100

export function createHttpClient({
  route,
  identity,
  allowsHttp1 = false,
  deadlineMs = 30_000,
  connectMs = 10_000,
  pingMs = 30_000,
  idleMs = 600_000,
  maxSessions = 4,
}: ClientSettings): HttpClient {
  const protocols = allowsHttp1 ? (['h2', 'http/1.1'] as const) : (['h2'] as const)
  const openTls = createOpenTls({ route, identity, protocols, timeoutMs: connectMs })
  const peers = new Map<string, Peer>()
  let underWay = 0
  /** Settled when the last answer before the end has come. */
  const quiet = Promise.withResolvers<void>()
  let isClosing = false

  function peerOf(origin: string): Peer {
    const known = peers.get(origin)
    if (known) return known
    const peer: Peer = { origin, sessions: [], isConnecting: false, waiting: new Set() }
    if (peers.size >= MOST_PEERS) forgetIdle()
    peers.set(origin, peer)
    return peer
  }

  function forgetIdle() {
    for (const [origin, peer] of peers) {
      if (peers.size < MOST_PEERS) return
      if (peer.isConnecting || peer.waiting.size > 0) continue
      if (peer.sessions.some((session) => !session.isIdle())) continue
      letGo(peer)
      peers.delete(origin)
    }
  }

  function letGo(peer: Peer) {
    for (const session of peer.sessions) session.close()
  }

  /** Gives those who wait what is free, and sees to it that there will be more. */
  function serve(peer: Peer) {
    if (peer.waiting.size === 0) return
    peer.sessions = peer.sessions.filter((session) => session.isOpen())
    for (const session of peer.sessions) {
      let places = session.free()
      for (const waiting of peer.waiting) {
        if (places-- <= 0 || !session.isOpen()) break
        take(peer, waiting)
        session.send(waiting.request, waiting.deadlineAt - performance.now(), waiting.done)
      }
    }
    if (peer.waiting.size === 0 || peer.isConnecting || peer.sessions.length >= maxSessions) return
    if (peer.sessions.every((session) => session.wantsAnother())) addConnection(peer)
  }

  function take(peer: Peer, waiting: Waiting) {
    peer.waiting.delete(waiting)
    clearTimeout(waiting.timer)
  }

  async function connect(peer: Peer): Promise<Session> {
    const onChange = () => serve(peer)
    const socket = await openTls(peer.origin)
    if (socket.alpnProtocol === 'h2')
      return openH2Session(peer.origin, socket, { onChange, pingMs, idleMs, timeoutMs: connectMs })
    if (allowsHttp1) return createH1Session(peer.origin, socket, { onChange, openTls, idleMs })
    socket.destroy()
    throw new Error('no HTTP/2')
  }

  async function addConnection(peer: Peer) {
    peer.isConnecting = true
    let failure: Reply | undefined
    try {
      const session = await connect(peer)
      peer.sessions.push(session)
    } catch (error) {
      failure = explainUnreachable(error)
    }
    peer.isConnecting = false
    // Those who have another connection wait for a place there.
    if (failure && !peer.sessions.some((session) => session.isOpen()))
      for (const waiting of peer.waiting) {
        take(peer, waiting)
        waiting.done(failure)
      }
    // Those it was for gave up, and nobody will come after them.
    if (isClosing && peer.waiting.size === 0) letGo(peer)
    serve(peer)
  }

  return {
    request(request) {
      if (isClosing) return Promise.resolve(unsent('closing', 'closing'))
      return new Promise<Reply>((resolve) => {
        underWay++
        const done = (reply: Reply) => {
          resolve(reply)
          if (--underWay === 0 && isClosing) quiet.resolve()
        }
        const peer = peerOf(request.origin)
        const waiting: Waiting = { request, deadlineAt: performance.now() + deadlineMs, done }
        peer.waiting.add(waiting)
        serve(peer)
        if (!peer.waiting.has(waiting)) return
        waiting.timer = setTimeout(() => {
          peer.waiting.delete(waiting)
          done(unsent('time', 'no connection in time'))
        }, deadlineMs / 2)
      })
    },
    async close() {
      isClosing = true
      if (underWay > 0) await quiet.promise
      for (const peer of peers.values()) letGo(peer)
      peers.clear()
    },
  }
}
