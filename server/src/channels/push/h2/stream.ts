// One request on a connection, and what has arrived of its answer so far.

import { MAX_RESPONSE_BYTES } from '../http/connection.ts'
import { lost, type ProviderReply } from '../http/exchange.ts'
import type { Headers } from './read-headers.ts'

export type Stream = {
  readonly id: number
  readonly deadlineAt: number
  /** The rest of the body, which waits for flow-control window, and the stream's current window. */
  unsent: Buffer | undefined
  window: number
  headers: Headers | undefined
  body: Buffer | undefined
  done(reply: ProviderReply): void
}

/** Returns false when the body exceeds the size limit. */
export function addBody(stream: Stream, bytes: Buffer): boolean {
  // Copied, because the chunk is shared with other answers and would stay in memory as long as this one.
  stream.body = stream.body === undefined ? Buffer.from(bytes) : Buffer.concat([stream.body, bytes])
  return stream.body.length < MAX_RESPONSE_BYTES
}

export function answerOf({ headers, body }: Stream): ProviderReply {
  if (headers === undefined) return lost('no answer')
  return { kind: 'answer', status: Number(headers[':status']), headers, body: body?.toString('utf8') ?? '' }
}
