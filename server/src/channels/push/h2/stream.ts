// One request on a connection, and what has come back for it so far.

import { MAX_RESPONSE_BYTES } from '../http/connection.ts'
import { lost, type ProviderReply } from '../http/exchange.ts'
import type { Headers } from './read-headers.ts'

export type Stream = {
  readonly id: number
  readonly deadlineAt: number
  /** What of the body had to wait until the other side has room for it, and how much it has. */
  unsent: Buffer | undefined
  window: number
  headers: Headers | undefined
  body: Buffer | undefined
  done(reply: ProviderReply): void
}

/** False when it is longer than anybody wants to know. */
export function addBody(stream: Stream, bytes: Buffer): boolean {
  // A copy: the chunk it came in is shared with other answers and would be kept as long as this one.
  stream.body = stream.body === undefined ? Buffer.from(bytes) : Buffer.concat([stream.body, bytes])
  return stream.body.length < MAX_RESPONSE_BYTES
}

export function answerOf({ headers, body }: Stream): ProviderReply {
  if (headers === undefined) return lost('no answer')
  return { kind: 'answer', status: Number(headers[':status']), headers, body: body?.toString('utf8') ?? '' }
}
