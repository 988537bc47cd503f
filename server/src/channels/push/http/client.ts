// The only HTTP client for push providers. Requests wait here, not in a connection, until a connection has a slot for
// them; so a request that never left is known not to have left. Each connection belongs to one app: problems with its
// requests (answers that never arrive, a connection that the peer closes) do not affect other apps.

import type { AppId } from '../../../lib/ids.ts'
import type { ProviderRoute } from '../../channel.ts'
import type { HttpConnection } from './connection.ts'
import { type ProviderReply, type ProviderRequest, unsent } from './exchange.ts'
import { createHttp1Connection } from './h1-connection.ts'
import { openHttp2Connection } from './h2-connection.ts'
import { type ClientCertificate, createOpenTls, describeConnectFailure } from './open-tls.ts'

export type PushHttpSettings = {
  route?: ProviderRoute | undefined
  identity?: ClientCertificate | undefined
  /** Some push services of browsers support only HTTP/1.1. */
  allowsHttp1?: boolean
  /** The time from the call to the whole answer. At most half of it is spent waiting for a slot on a connection. */
  deadlineMs?: number
  connectMs?: number
  pingMs?: number
  idleMs?: number
  maxSessions?: number
  /** How many origins may have connections at once: of all apps, and of one. */
  maxPeers?: number
  maxPeersOfApp?: number
  /** How many connections of one app may be opening at once. */
  maxConnectingOfApp?: number
}

export type PushHttpClient = {
  /** Never rejects. */
  request(request: ProviderRequest): Promise<ProviderReply>
  /** Waits for requests in flight. */
  close(): Promise<void>
}

type QueuedRequest = {
  request: ProviderRequest
  deadlineAt: number
  isSecondTry: boolean
  timer?: NodeJS.Timeout
  done(reply: ProviderReply): void
}
/** The connections of one app to one origin. */
type AppOrigin = {
  appId: AppId
  origin: string
  sessions: HttpConnection[]
  isConnecting: boolean
  /** In the order of arrival. */
  waiting: Set<QueuedRequest>
}

/** Origins come from users' subscriptions. Beyond these numbers, idle connections are closed. */
const MOST_PEERS = 500
const MOST_PEERS_OF_APP = 50
/**
 * A TLS handshake takes milliseconds of this thread. Hundreds at once, to origins that somebody made up, would keep all
 * other apps waiting.
 */
const MOST_CONNECTING_OF_APP = 4

export function createPushHttpClient({
  route,
  identity,
  allowsHttp1 = false,
  deadlineMs = 30_000,
  connectMs = 10_000,
  pingMs = 30_000,
  idleMs = 600_000,
  maxSessions = 4,
  maxPeers = MOST_PEERS,
  maxPeersOfApp = MOST_PEERS_OF_APP,
  maxConnectingOfApp = MOST_CONNECTING_OF_APP,
}: PushHttpSettings): PushHttpClient {
  const protocols = allowsHttp1 ? (['h2', 'http/1.1'] as const) : (['h2'] as const)
  const openTls = createOpenTls({ route, identity, protocols, timeoutMs: connectMs })
  const peers = new Map<string, AppOrigin>()
  /** For each app: how many connections are being opened, and which origins wait until one of them is done. */
  const connecting = new Map<AppId, { count: number; next: Set<AppOrigin> }>()
  let underWay = 0
  /** Resolved when the last answer has arrived after `close` was called. */
  const quiet = Promise.withResolvers<void>()
  let isClosing = false

  function peerOf({ appId, origin }: ProviderRequest): AppOrigin {
    const name = nameOf({ appId, origin })
    const known = peers.get(name)
    if (known) return known
    const peer: AppOrigin = { appId, origin, sessions: [], isConnecting: false, waiting: new Set() }
    makeRoom(appId)
    peers.set(name, peer)
    return peer
  }

  /** Closes an idle origin of the app itself or, if all apps together have too many, of the app with the most. */
  function makeRoom(appId: AppId) {
    const byApp = Map.groupBy(peers.values(), (peer) => peer.appId)
    const own = byApp.get(appId) ?? []
    if (own.length >= maxPeersOfApp) return forgetOldestIdle(own)
    if (peers.size < maxPeers) return
    const mostFirst = [...byApp.values()].sort((a, b) => b.length - a.length)
    for (const some of mostFirst) if (forgetOldestIdle(some)) return
  }

  function forgetOldestIdle(some: readonly AppOrigin[]): boolean {
    const idle = some.find(isIdle)
    if (!idle) return false
    letGo(idle)
    return peers.delete(nameOf(idle))
  }

  function letGo(peer: AppOrigin) {
    for (const session of peer.sessions) session.close()
  }

  /** Gives waiting requests the free slots, and opens another connection if they are not enough. */
  function serve(peer: AppOrigin) {
    if (peer.waiting.size === 0) return
    peer.sessions = peer.sessions.filter((session) => session.isOpen())
    for (const session of peer.sessions) {
      let places = session.freeSlots()
      for (const waiting of peer.waiting) {
        if (places-- <= 0 || !session.isOpen()) break
        take(peer, waiting)
        session.send(waiting.request, waiting.deadlineAt - performance.now(), (reply) => settle(peer, waiting, reply))
      }
    }
    if (peer.waiting.size === 0 || peer.isConnecting || peer.sessions.length >= maxSessions) return
    if (peer.sessions.every((session) => session.allowsAnother())) addConnection(peer)
  }

  /**
   * A request that the peer says it has not processed is retried once immediately (RFC 9113, 8.7), on another
   * connection if necessary.
   */
  function settle(peer: AppOrigin, waiting: QueuedRequest, reply: ProviderReply) {
    const isUntouched = reply.kind === 'unsent' && reply.cause === 'stream'
    if (!isUntouched || waiting.isSecondTry || isClosing) return waiting.done(reply)
    wait(peer, { ...waiting, isSecondTry: true })
  }

  function wait(peer: AppOrigin, waiting: QueuedRequest) {
    peer.waiting.add(waiting)
    serve(peer)
    if (!peer.waiting.has(waiting)) return
    const leftMs = waiting.deadlineAt - performance.now()
    waiting.timer = setTimeout(
      () => {
        peer.waiting.delete(waiting)
        waiting.done(unsent('time', 'no connection in time'))
      },
      Math.min(deadlineMs / 2, leftMs),
    )
  }

  function take(peer: AppOrigin, waiting: QueuedRequest) {
    peer.waiting.delete(waiting)
    clearTimeout(waiting.timer)
  }

  async function connect(peer: AppOrigin): Promise<HttpConnection> {
    const onChange = () => serve(peer)
    const socket = await openTls(peer.origin)
    if (socket.alpnProtocol === 'h2')
      return openHttp2Connection(peer.origin, socket, { onChange, pingMs, idleMs, timeoutMs: connectMs })
    if (allowsHttp1) return createHttp1Connection(peer.origin, socket, { onChange, openTls, idleMs })
    socket.destroy()
    throw new Error('no HTTP/2')
  }

  function addConnection(peer: AppOrigin) {
    const ofApp = connecting.get(peer.appId) ?? { count: 0, next: new Set() }
    connecting.set(peer.appId, ofApp)
    if (ofApp.count >= maxConnectingOfApp) ofApp.next.add(peer)
    else {
      ofApp.count++
      void openConnection(peer).finally(() => {
        ofApp.count--
        // The origin that waited may need no connection any more. Then the next one gets its turn.
        for (const next of ofApp.next) {
          if (ofApp.count >= maxConnectingOfApp) break
          ofApp.next.delete(next)
          serve(next)
        }
        if (ofApp.count === 0) connecting.delete(peer.appId)
      })
    }
  }

  async function openConnection(peer: AppOrigin) {
    peer.isConnecting = true
    let failure: ProviderReply | undefined
    try {
      const session = await connect(peer)
      peer.sessions.push(session)
    } catch (error) {
      failure = describeConnectFailure(error)
    }
    peer.isConnecting = false
    // If there is another connection, the requests wait for a slot there.
    if (failure && !peer.sessions.some((session) => session.isOpen()))
      for (const waiting of peer.waiting) {
        take(peer, waiting)
        waiting.done(failure)
      }
    // The requests that the connection was opened for have timed out, and no others will come.
    if (isClosing && peer.waiting.size === 0) letGo(peer)
    serve(peer)
  }

  return {
    request(request) {
      if (isClosing) return Promise.resolve(unsent('closing', 'closing'))
      return new Promise<ProviderReply>((resolve) => {
        underWay++
        const done = (reply: ProviderReply) => {
          resolve(reply)
          if (--underWay === 0 && isClosing) quiet.resolve()
        }
        const deadlineAt = performance.now() + deadlineMs
        wait(peerOf(request), { request, deadlineAt, isSecondTry: false, done })
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

const nameOf = ({ appId, origin }: Pick<AppOrigin, 'appId' | 'origin'>) => `${appId} ${origin}`

const isIdle = ({ isConnecting, waiting, sessions }: AppOrigin) =>
  !isConnecting && waiting.size === 0 && sessions.every((session) => session.isIdle())
