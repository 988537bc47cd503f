import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../lib/clock.ts'
import { invalid } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type HttpExchange, type RouteInfo, send, sendError } from './answer.ts'
import { createBodyBudget } from './body/budget.ts'
import { LARGE_BODY_BYTES } from './body/parse.ts'
import { createAddressOf } from './client-address.ts'
import { createKeylessLimiter } from './keyless-limiter.ts'
import type { Metrics } from './metrics.ts'
import { createPathTable } from './not-found.ts'
import { findRouteProblems, planRoute } from './plan.ts'
import type { KeyLookup, LimitCounter, Route } from './route.ts'
import { createRouter } from './router.ts'
import { kitRoutes } from './routes.ts'
import { type Kit, type PlannedRoute, serve } from './serve.ts'
import { refuseExpectation, refuseOnSocket } from './socket-errors.ts'
import { createCompilers } from './validate.ts'

export type HttpServerOptions = {
  routes: readonly Route[]
  keys: KeyLookup
  limits: LimitCounter
  clock: Clock
  log: Log
  metrics: Metrics
  isReady: () => boolean | Promise<boolean>
  trustProxy?: boolean | string
  metricsToken?: string | undefined
  /** The address of the server, for the examples on its pages. It is asked for when a page is shown. */
  baseUrl?: (() => string) | undefined
  /**
   * How long a request may take to arrive: its headers, and all of it. A body may wait for memory as long in addition,
   * and a large one has to make progress in every third of this time.
   */
  requestTimeoutMs?: number
  /** Memory for the bodies of requests in progress. */
  bodyBytes?: number
  /** How long `close()` waits for answers in progress. */
  drainMs?: number
  /**
   * How long requests are still accepted after `startDraining()`, so that load balancers can notice first. Defaults to
   * no time.
   */
  linger?: () => Promise<unknown>
  /** Requests per second that one address may make without a key, per app. */
  keylessRequestsPerSecond?: number
}

/** The older public address ended in /api/v1; clients of both kinds find every route. */
const PREFIXES = ['', '/api/v1']
const MAX_HEADER_BYTES = 16_384
const DEFAULT_BODY_BYTES = 33_554_432
/**
 * How much of a body Node buffers before anybody reads it. Node stops at the end of the chunk it has read from the
 * socket, which is at most 64 KB.
 */
const UNREAD_BYTES = 16_384

export type HttpServer = {
  /** Node's own server; its listener is `answer`. */
  server: Server
  answer: RequestListener
  /** Returns the address that the server listens on. */
  listen(at: { port: number; host: string }): Promise<string>
  /** From now on /ready answers 503 and connections close after their next answer; requests are still accepted. */
  startDraining(): void
  /**
   * Drains, stops accepting, lets requests in progress finish, and at the deadline closes the remaining connections.
   */
  close(): Promise<void>
}

/**
 * Creates a server that is not listening yet. Throws when a route does not declare its access, its limits or its
 * errors.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { keys, limits, clock, log, metrics, metricsToken, requestTimeoutMs = 30_000 } = options
  const bodies = createBodyBudget({
    bytes: options.bodyBytes ?? DEFAULT_BODY_BYTES,
    largeBytes: LARGE_BODY_BYTES,
    waitMs: requestTimeoutMs,
  })
  metrics.gauge('carillon_request_bodies', 'Bytes of request bodies under way, bodies that wait, bodies refused.', () =>
    bodies.stats(),
  )
  const kit: Kit = {
    keys,
    limits,
    clock,
    log,
    metricsToken,
    bodies,
    bodyStallMs: requestTimeoutMs / 3,
    addressOf: createAddressOf(options.trustProxy ?? false),
    keylessLimiter: createKeylessLimiter(clock, options.keylessRequestsPerSecond),
    logsRequests: log.isLevelEnabled('debug'),
    isDraining: false,
  }
  const isReady = async () => !kit.isDraining && (await options.isReady())
  const routes = [
    ...options.routes,
    ...kitRoutes({ routes: options.routes, metrics, isReady, baseUrl: options.baseUrl }),
  ]
  const problems = findRouteProblems(routes, limits)
  if (problems.length > 0) throw new Error(`the routes do not hold together:\n  ${problems.join('\n  ')}`)

  const compilers = createCompilers()
  const planned = routes.map((route): PlannedRoute => {
    const plan = planRoute(route, compilers, metrics)
    return { ...plan, operation: route.operation }
  })
  const unmatchedRoute: RouteInfo = {
    operation: 'none',
    style: 'apps',
    isOpenToSites: false,
    stats: metrics.operation('none'),
  }

  const router = createRouter<PlannedRoute>()
  for (const plan of planned)
    for (const prefix of PREFIXES) router.add(plan.route.method, `${prefix}${plan.route.path}`, plan)
  const paths = createPathTable(
    planned.map(({ route: { method, path }, isOpenToSites }) => ({ method, path, isOpenToSites })),
    PREFIXES,
  )
  const newRequestId = requestIds()

  const answer: RequestListener = (request, response) => {
    const exchange: HttpExchange = { request, response, id: newRequestId(request), startedMs: performance.now() }
    try {
      const method = request.method as string
      const { path: givenPath, query } = readUrl(request.url as string)
      const path = router.normalize(givenPath)
      const found = router.find(method === 'HEAD' ? 'GET' : method, path)
      if (found) void serve(kit, found.value, exchange, found.params, query)
      else send(kit, unmatchedRoute, exchange, paths.answer(method, path))
    } catch (error) {
      sendError(kit, unmatchedRoute, exchange, error instanceof URIError ? badlyEncoded() : error)
    }
  }
  const server = listenerServer(answer, { headersMs: requestTimeoutMs, requestMs: 2 * requestTimeoutMs })
  let drained: Promise<unknown> | undefined
  const startDraining = () => {
    kit.isDraining = true
    drained ??= server.listening ? options.linger?.() : undefined
    return drained
  }
  return {
    server,
    answer,
    listen: (at) => listen(server, at),
    startDraining,
    async close() {
      await startDraining()
      await stop(server, options.drainMs ?? 15_000)
    },
  }
}

const badlyEncoded = () => invalid('The address is not correctly encoded')

/** Returns path and query of a request's target. A proxy may send the target with scheme and host. */
function readUrl(target: string): { path: string; query: string } {
  const url = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = url.search(/[?#]/)
  if (end === -1) return { path: url, query: '' }
  const query = url[end] === '?' ? (url.slice(end + 1).split('#', 1)[0] as string) : ''
  return { path: url.slice(0, end), query }
}

function listenerServer(
  answer: RequestListener,
  { headersMs, requestMs }: Record<'headersMs' | 'requestMs', number>,
): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      requestTimeout: requestMs,
      // Also closes connections that send nothing at all.
      headersTimeout: headersMs,
      connectionsCheckingInterval: Math.min(2_000, headersMs / 4),
      highWaterMark: UNREAD_BYTES,
      // Longer than the 60 s of common proxies, so that the proxy closes the connection.
      keepAliveTimeout: 72_000,
      // Node would answer a missing Host without a body.
      requireHostHeader: false,
    },
    answer,
  )
  // Closes connections on which the caller neither reads nor writes. Longer than the longest answer, which takes 100 s.
  server.timeout = 120_000
  server.on('clientError', refuseOnSocket)
  server.on('checkExpectation', refuseExpectation)
  return server
}

async function listen(server: Server, { port, host }: { port: number; host: string }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, port: taken, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`
}

/** Callers' ids are kept if they are safe to log. Our own are short and never repeat within a process. */
function requestIds() {
  const process = randomBytes(5).toString('hex')
  let last = 0
  return ({ headers }: IncomingMessage): string => {
    const given = headers['x-request-id']
    return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : `${process}-${(++last).toString(36)}`
  }
}

function stop(server: Server, drainMs: number): Promise<void> {
  if (!server.listening) return Promise.resolve()
  return new Promise((resolve) => {
    const deadline = setTimeout(() => server.closeAllConnections(), drainMs)
    server.close(() => {
      clearTimeout(deadline)
      resolve()
    })
  })
}
