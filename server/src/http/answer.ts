// Sends answers: with a Content-Type (JSON unless the route sets another), the request's id, and a count in the
// metrics. Only the 204 of a preflight and a 304 have no body.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { AppError, invalid } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { corsHeaders } from './cors.ts'
import { type ErrorAnswer, type ErrorStyle, errorAnswer } from './errors.ts'
import { type OperationStats, record } from './metrics.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'

export type ResponseContext = { log: Log; logsRequests: boolean; isDraining: boolean }

/** What an answer needs to know about its route. Requests that match no route have one as well. */
export type RouteInfo = { operation: string; style: ErrorStyle; isOpenToSites: boolean; stats: OperationStats }

/** A request in progress and its answer. */
export type HttpExchange = { request: IncomingMessage; response: ServerResponse; id: string; startedMs: number }

export function send(
  desk: ResponseContext,
  place: RouteInfo,
  { request, response, id, startedMs }: HttpExchange,
  answer: { status: number; body: unknown; headers?: Record<string, string> | undefined },
): void {
  if (response.headersSent || response.destroyed) return
  const { status, body, headers } = answer
  // Serialized first: a body that cannot be serialized must become an error before anything is sent.
  const contentType = headers?.['content-type']
  const stream = isStream(body) ? body : undefined
  const payload = contentType === undefined ? JSON.stringify(body ?? {}) : (body as string)
  const ms = performance.now() - startedMs
  record(place.stats, status, ms)
  if (desk.logsRequests) desk.log.debug({ request: id, operation: place.operation, status, ms }, 'answered')
  const sent: Record<string, string | number> = { 'x-request-id': id }
  if (place.isOpenToSites) Object.assign(sent, corsHeaders)
  // An open connection would keep a stopping server from stopping.
  if (desk.isDraining) sent.connection = 'close'
  if (headers) Object.assign(sent, headers)
  if (status === 204 || status === 304) response.writeHead(status, sent).end()
  else if (stream) void streamBody(desk, stream, { request, response: response.writeHead(status, sent), id })
  else {
    if (contentType === undefined) sent['content-type'] = JSON_TYPE
    sent['content-length'] = Buffer.byteLength(payload)
    response.writeHead(status, sent).end(request.method === 'HEAD' ? undefined : payload)
  }
}

const isStream = (body: unknown): body is AsyncIterable<Uint8Array> =>
  typeof body === 'object' && body !== null && Symbol.asyncIterator in body

/**
 * Streams as fast as the caller reads. Headers are already sent, so a failure can only be signaled by ending the
 * connection.
 */
async function streamBody(
  { log }: ResponseContext,
  stream: AsyncIterable<Uint8Array>,
  { request, response, id }: Pick<HttpExchange, 'request' | 'response' | 'id'>,
): Promise<void> {
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  try {
    await pipeline(stream, response)
  } catch (error) {
    log.debug({ request: id, reason: (error as Error).message }, 'Response ended early')
  }
}

export function sendError(desk: ResponseContext, place: RouteInfo, exchange: HttpExchange, error: unknown): void {
  // The work was aborted because the caller disconnected: that is not a failure, and nobody reads the answer.
  if (exchange.response.destroyed && (error as Error | undefined)?.name === 'AbortError') return
  send(desk, place, exchange, answerFor(desk.log, place, exchange.id, error))
}

const INTERNAL: ErrorAnswer = { status: 500, body: { errors: ['Internal server error'] }, headers: {} }

function answerFor(log: Log, { style, operation }: RouteInfo, request: string, error: unknown): ErrorAnswer {
  if (error instanceof AppError) return errorAnswer(error, style)
  const state = sqlState(error)
  if (state?.startsWith('22')) {
    // A value that PostgreSQL rejects but our checks accepted: the caller has to correct it, and we should look into
    // it.
    log.warn({ request, operation, state }, 'The database rejected a value that passed validation')
    return errorAnswer(invalid('A value in the request cannot be stored'), style)
  }
  log.error({ request, operation, ...traceOf(error, state) }, 'request failed')
  return INTERNAL
}

function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined ? code : undefined
}

/** Where the error happened, without the data: messages of PostgreSQL and of JSON.parse quote it. */
function traceOf(error: unknown, state: string | undefined): Record<string, unknown> {
  if (!(error instanceof Error)) return { failure: typeof error }
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  const quotesData = state !== undefined || error instanceof SyntaxError
  return {
    failure: error.name,
    ...(state !== undefined && { state }),
    ...(!quotesData && { reason: error.message }),
    at: frames.slice(0, 12).map((line) => line.trim()),
  }
}
