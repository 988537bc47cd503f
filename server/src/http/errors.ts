// The only place that knows how an error looks in an answer: its status by kind, its shape by operation.

import { type AppError, BadKey, type ErrorKind, KEYS_PAGE } from '../lib/errors.ts'

/**
 * How the operations of one family answer errors:
 *   shape: list of objects or list of strings
 *   limited: the same for 429
 *   missing: the same for an absent Authorization header
 *   success: adds `success: false` to string lists, except to "service unavailable", whose shape is the same everywhere
 *   statuses: replaces statuses that the family does not use
 *   states: resources of the family have states, in some of which a valid request is impossible: 422
 *   unknownApp: the status for an app that is missing or not the key's. Defaults to 404. With another status the
 *     answer refers to the documentation of keys, because that is where the mistake usually is
 */
type ErrorStyleRules = {
  shape: 'objects' | 'strings'
  limited: 'objects' | 'strings'
  missing: 'objects' | 'strings'
  success?: true
  states?: true
  statuses?: Partial<Record<ErrorKind, number>>
  unknownApp?: number
}

export const errorStyles = {
  users: { shape: 'objects', limited: 'objects', missing: 'objects' },
  journeys: { shape: 'objects', limited: 'objects', missing: 'objects', states: true },
  apps: { shape: 'strings', limited: 'strings', missing: 'objects' },
  messages: { shape: 'strings', limited: 'strings', missing: 'objects' },
  templates: { shape: 'strings', limited: 'objects', missing: 'objects' },
  segments: { shape: 'strings', limited: 'objects', missing: 'objects', success: true, unknownApp: 400 },
  metrics: { shape: 'strings', limited: 'strings', missing: 'strings' },
  // The old API refuses with 400, 401 or 403: a conflict of the new model (too many subscriptions, a token in use) and
  // an unreadable body are invalid requests there.
  legacy: {
    shape: 'strings',
    limited: 'strings',
    missing: 'objects',
    success: true,
    statuses: { conflict: 400, 'too-large': 400, 'unsupported-media-type': 400 },
  },
} as const satisfies Record<string, ErrorStyleRules>

export type ErrorStyle = keyof typeof errorStyles

const STATUS: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  unprocessable: 422,
  'too-large': 413,
  'unsupported-media-type': 415,
  'timed-out': 408,
  limited: 429,
  unavailable: 503,
}

export type ErrorAnswer = { status: number; body: Record<string, unknown>; headers: Record<string, string> }

/** The original service's wording: without the header the body, and with it the app id, could not be read. */
const UNKNOWN_APP = 'app_id not found. You may be missing a Content-Type: application/json header.'
const REFERENCE = [KEYS_PAGE]

export function errorStatus(kind: ErrorKind, styleName: ErrorStyle): number {
  const style: ErrorStyleRules = errorStyles[styleName]
  return style.statuses?.[kind] ?? STATUS[kind]
}

export function errorAnswer(error: AppError, styleName: ErrorStyle): ErrorAnswer {
  const style: ErrorStyleRules = errorStyles[styleName]
  const unknownApp = error.problems[0]?.code === 'app-0' ? style.unknownApp : undefined
  const status = unknownApp ?? errorStatus(error.kind, styleName)
  const headers: Record<string, string> = {}
  const shape = shapeOf(error, style)
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds)
  const body: Record<string, unknown> = {
    ...(style.success && shape === 'strings' && error.kind !== 'unavailable' && { success: false }),
    // An error without a message is expressed by its status alone.
    ...(error.problems.length > 0 && { errors: problemsIn(shape, error) }),
  }
  if (unknownApp !== undefined) body.errors = [UNKNOWN_APP]
  if (error instanceof BadKey || unknownApp !== undefined) body.reference = REFERENCE
  return { status, body, headers }
}

const problemsIn = (shape: ErrorStyleRules['shape'], { problems }: AppError) =>
  shape === 'objects'
    ? problems.map(({ code, title, meta }) => ({ code, title, ...(meta && { meta }) }))
    : problems.map(({ title }) => title)

function shapeOf(error: AppError, style: ErrorStyleRules): 'objects' | 'strings' {
  // "Service unavailable" and a bad key are a list of strings everywhere.
  if (error.kind === 'unavailable' || error instanceof BadKey) return 'strings'
  if (error.kind === 'limited') return style.limited
  if (error.kind === 'unauthenticated') return style.missing
  return style.shape
}
