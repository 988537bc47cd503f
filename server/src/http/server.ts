import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import { invalid } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type Place, send, sendError } from './answer.ts'
import type { Metrics } from './metrics.ts'
import { createPathTable, type PathTable } from './not-found.ts'
import { findRouteProblems, planRoute } from './plan.ts'
import type { KeyLookup, LimitCounter, Route } from './route.ts'
import { kitRoutes } from './routes.ts'
import { createSdkDoor } from './sdk-door.ts'
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
  /** How long a request may take to arrive, headers and body. */
  requestTimeoutMs?: number
  /** How long `close()` waits for answers that are under way. */
  drainMs?: number
  /** Requests in a second that one address may make without a key, for one app. */
  doorRequestsPerSecond?: number
}

/** The older public address ended in /api/v1; clients of both kinds find every route. */
const PREFIXES = ['', '/api/v1']
const METHODS_WITH_BODY = ['DELETE', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY']
const MAX_HEADER_BYTES = 16_384

/** A server that is not listening yet. Throws when a route forgets to say who may call it, what it uses up or how it errs. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { keys, limits, clock, log, metrics, metricsToken } = options
  const kit: Kit = {
    keys,
    limits,
    clock,
    log,
    metricsToken,
    door: createSdkDoor(clock, options.doorRequestsPerSecond),
    logsRequests: log.isLevelEnabled('debug'),
    isDraining: false,
  }
  const isReady = async () => !kit.isDraining && (await options.isReady())
  const routes = [...options.routes, ...kitRoutes({ routes: options.routes, metrics, isReady })]
  const problems = findRouteProblems(routes, limits)
  if (problems.length > 0) throw new Error(`the routes do not hold together:\n  ${problems.join('\n  ')}`)

  const compilers = createCompilers()
  const planned = routes.map((route): PlannedRoute => {
    const plan = planRoute(route, compilers, metrics)
    return { ...plan, operation: route.operation }
  })
  const nowhere: Place = { operation: 'none', style: 'apps', isOpenToSites: false, stats: metrics.operation('none') }

  const app = fastify({
    logger: false,
    genReqId: requestIds(),
    trustProxy: options.trustProxy ?? false,
    return503OnClosing: false,
    requestTimeout: options.requestTimeoutMs ?? 30_000,
    // A caller that neither reads nor writes; longer than the longest answer, 100 s.
    connectionTimeout: 120_000,
    // Longer than the 60 s of common proxies, so that it is they who close.
    keepAliveTimeout: 72_000,
    routerOptions: {
      // Longer than any URL: what a parameter may hold is for the domains to say, in their own words.
      maxParamLength: MAX_HEADER_BYTES,
      // Handed on as text, and read after the key is judged.
      querystringParser: (text: string) => ({ text }),
    },
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.requestTimeoutMs ?? 30_000,
      connectionsCheckingInterval: Math.min(2_000, (options.requestTimeoutMs ?? 30_000) / 4),
      // Node answers a missing Host without a body.
      requireHostHeader: false,
    },
    frameworkErrors: (_error, request, reply) =>
      sendError(
        kit,
        nowhere,
        request as FastifyRequest,
        reply as unknown as FastifyReply,
        performance.now(),
        invalid('The address is not correctly encoded'),
      ),
    clientErrorHandler: refuseOnSocket,
  })
  // Bodies are read by the kit, after the key is judged.
  for (const method of METHODS_WITH_BODY) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  for (const plan of planned)
    for (const prefix of PREFIXES)
      app.route({
        method: plan.route.method,
        url: `${prefix}${plan.route.path}`,
        handler: (request, reply) => void serve(kit, plan, request, reply),
      })

  const paths = createPathTable(
    planned.map(({ route: { method, path }, isOpenToSites }) => ({ method, path, isOpenToSites })),
    PREFIXES,
  )
  app.setNotFoundHandler((request, reply) => answerUnknown(kit, nowhere, paths, request, reply))
  app.setErrorHandler((error, request, reply) => sendError(kit, nowhere, request, reply, performance.now(), error))
  app.server.on('checkExpectation', refuseExpectation)
  drainOnClose(app, kit, options.drainMs ?? 15_000)
  return app
}

function answerUnknown(kit: Kit, place: Place, paths: PathTable, request: FastifyRequest, reply: FastifyReply): void {
  send(kit, place, request, reply, performance.now(), paths.answer(request.method, request.url))
}

/** Ids of callers are kept when they are harmless to log; our own are short and never repeat within a process. */
function requestIds() {
  const process = randomBytes(5).toString('hex')
  let last = 0
  return ({ headers }: IncomingMessage): string => {
    const given = headers['x-request-id']
    return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : `${process}-${(++last).toString(36)}`
  }
}

/** Stop accepting, let what is under way finish, and at the deadline cut what is left. */
function drainOnClose(app: FastifyInstance, kit: Kit, drainMs: number): void {
  app.addHook('preClose', (done) => {
    kit.isDraining = true
    const deadline = setTimeout(() => app.server.closeAllConnections(), drainMs)
    app.server.once('close', () => clearTimeout(deadline))
    done()
  })
}
