// Handles one request from its headers to its answer. The order of the checks below is deliberate.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { RateLimited } from '../lib/errors.ts'
import { nextTurn } from '../lib/event-loop.ts'
import { isStorable } from '../lib/text.ts'
import { type HttpExchange, type ResponseContext, type RouteInfo, send, sendError } from './answer.ts'
import {
  type AuthorizationContext,
  type AuthorizedEntry,
  authorize,
  identify,
  readAppId,
  requireSecondPermission,
} from './authorize.ts'
import type { BodyBudget, BodyLease } from './body/budget.ts'
import { decodeBody, LARGE_BODY_BYTES, parseBody, unstorable } from './body/parse.ts'
import { FORM_BODY, hasBody, JSON_BODY, readBody } from './body/read.ts'
import type { AddressOf } from './client-address.ts'
import type { RoutePlan } from './plan.ts'
import { convertQuery, type Query, readQuery } from './read-query.ts'
import type { AppGate, Call, Caller, Charge, LimitCounter, Route } from './route.ts'

export type Kit = ResponseContext &
  AuthorizationContext & { limits: LimitCounter; addressOf: AddressOf; bodies: BodyBudget; bodyStallMs: number }
export type PlannedRoute = RoutePlan & RouteInfo

/** One object per request with its methods on the prototype, so that no closures are created. */
class IncomingCall implements Call {
  readonly app: AppGate
  readonly caller: Caller
  readonly params: Record<string, string>
  readonly query: Query
  readonly body: unknown
  readonly isHead: boolean
  readonly ip: string
  readonly now: Date
  readonly #headers: IncomingHttpHeaders
  readonly #response: ServerResponse

  constructor(
    entry: AuthorizedEntry,
    params: Record<string, string>,
    query: Query,
    body: unknown,
    { request: { headers, method }, response }: HttpExchange,
    ip: string,
    now: Date,
  ) {
    // Undefined on routes without an app, whose handlers do not use it; the type saves all other handlers a check.
    this.app = entry.app as AppGate
    this.caller = entry.caller
    this.params = params
    this.query = query
    this.body = body
    this.isHead = method === 'HEAD'
    this.ip = ip
    this.now = now
    this.#headers = headers
    this.#response = response
  }

  /** Created on demand, because few handlers use it. */
  get signal(): AbortSignal {
    const controller = new AbortController()
    if (this.#response.closed) controller.abort()
    else this.#response.once('close', () => controller.abort())
    return controller.signal
  }

  header(name: string): string | undefined {
    const value = this.#headers[name.toLowerCase()]
    return Array.isArray(value) ? value[0] : value
  }
}

/**
 * Never rejects: every failure becomes an answer. Awaits only actual promises, so that cached values cause no delay.
 */
export async function serve(
  kit: Kit,
  plan: PlannedRoute,
  exchange: HttpExchange,
  given: Record<string, string>,
  queryText: string,
): Promise<void> {
  let lease: BodyLease | undefined
  try {
    const { route } = plan
    const { request } = exchange
    const ip = kit.addressOf(request)
    const found = identify(kit, plan, request.headers, given)
    const visitor = found instanceof Promise ? await found : found
    const params = readParams(plan, given)
    const query = queryText === '' ? {} : readQuery(queryText)

    // When the body names the app, it is read before the key is checked against the app; otherwise afterwards.
    let entry: AuthorizedEntry | undefined
    if (plan.appIn !== 'body') {
      const named = plan.appIn === 'path' ? params : query
      const appId = plan.appIn === 'none' ? undefined : readAppId(named.app_id, plan, visitor)
      const admitted = authorize(kit, plan, visitor, appId, ip)
      entry = admitted instanceof Promise ? await admitted : admitted
    }
    let size = 0
    let body: unknown
    if (route.body && hasBody(request)) {
      const type = route.isRaw ? undefined : route.isForm ? FORM_BODY : JSON_BODY
      lease = kit.bodies.lease(ip)
      const bytes = await readBody(request, { type, maxBytes: plan.maxBodyBytes, stallMs: kit.bodyStallMs }, lease)
      size = bytes.length
      if (route.isRaw) body = bytes
      else {
        const parsed = route.isForm ? decodeBody(bytes) : parseBody(bytes, plan)
        body = parsed instanceof Promise ? await parsed : parsed
      }
    } else if (route.mayOmitBody) body = {}
    if (entry === undefined) {
      const appId = readAppId((body as { app_id?: unknown } | null | undefined)?.app_id, plan, visitor)
      entry = await authorize(kit, plan, visitor, appId, ip)
    }

    const call = new IncomingCall(entry, params, query, body, exchange, ip, kit.clock.now())
    requireSecondPermission(plan, entry, call)
    if (route.limits.length > 0 && !kit.limits.isOff()) {
      const charges = plan.charges ?? (await chargesOf(route, call))
      const wait = charges.length === 0 ? 0 : kit.limits.take(call.app, charges)
      const waitSeconds = typeof wait === 'number' ? wait : await wait
      if (waitSeconds > 0) throw new RateLimited(waitSeconds)
    }
    // Processing a large body takes long enough to deserve a turn of the event loop of its own.
    const isLarge = size > LARGE_BODY_BYTES
    if (isLarge) await nextTurn()
    plan.validateParams?.(params, 0)
    if (plan.validateQuery) {
      convertQuery(query, plan.conversions)
      plan.validateQuery(query, 0)
    }
    plan.validateBody?.(body, size)
    if (isLarge) await nextTurn()
    const answer = await route.handle(call as never)
    // Merged requests all finish in the same turn, and the answer to a large request may be just as large.
    if (isLarge) await nextTurn()
    send(kit, plan, exchange, answer)
  } catch (error) {
    sendError(kit, plan, exchange, error)
  } finally {
    lease?.release()
  }
}

function readParams({ paramNames, idParams }: RoutePlan, given: Record<string, string>): Record<string, string> {
  for (const name of paramNames) if (!isStorable(given[name] as string)) throw unstorable(name)
  for (const name of idParams) given[name] = (given[name] as string).toLowerCase()
  return given
}

async function chargesOf({ limits, operation }: Route, call: Call): Promise<Charge[]> {
  const charges: Charge[] = []
  for (const { rule, counter = operation, subjects, when } of limits) {
    if (when && !when(call)) continue
    if (!subjects) charges.push({ rule, counter })
    else for (const subject of await subjects(call)) charges.push({ rule, counter, subject })
  }
  return charges
}
