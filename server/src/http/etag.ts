// Answers that a caller may have already: it says what it has, and is told so instead of getting it again.

import { hash } from 'node:crypto'
import type { Answer, Call } from './route.ts'

/** The answer with an ETag, or 304 where the caller named that one. The body is text, with its content type among the headers. */
export function unlessKnown(call: Pick<Call, 'header'>, answer: Answer & { body: string }): Answer {
  const etag = `"${hash('sha256', answer.body, 'base64url').slice(0, 22)}"`
  const headers = { ...answer.headers, etag }
  const { 'content-type': _, ...bare } = headers as Record<string, string>
  return isNamed(etag, call.header('if-none-match')) ? { status: 304, body: '', headers: bare } : { ...answer, headers }
}

/** Proxies that compress mark the tag as weak; the content is the same. */
const isNamed = (etag: string, given = '') =>
  given.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)
