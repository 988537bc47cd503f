// Conditional answers: a caller that names the version it already has gets 304 instead of the body.

import { hash } from 'node:crypto'
import type { Answer, Call } from './route.ts'

/**
 * Adds an ETag to the answer, or answers 304 when the caller named it. The body is text, with its content type among
 * the headers.
 */
export function unlessKnown(call: Pick<Call, 'header'>, answer: Answer & { body: string }): Answer {
  const etag = `"${hash('sha256', answer.body, 'base64url').slice(0, 22)}"`
  const headers = { ...answer.headers, etag }
  const { 'content-type': _, ...bare } = headers as Record<string, string>
  return isNamed(etag, call.header('if-none-match')) ? { status: 304, body: '', headers: bare } : { ...answer, headers }
}

/** Proxies that compress mark the tag as weak; the content is the same. */
const isNamed = (etag: string, given = '') =>
  given.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)
