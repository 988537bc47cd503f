// What the client needs to know of a connection, whichever version of HTTP it speaks.

import type { ProviderReply, ProviderRequest } from './exchange.ts'

/** Answers of providers are a line long. What is longer is cut: the status has said all. */
export const MAX_RESPONSE_BYTES = 65_536

export type HttpConnection = {
  /** How many more requests it takes now. */
  freeSlots(): number
  /** False once it takes no more requests: the other side is leaving, or it is closed. */
  isOpen(): boolean
  isIdle(): boolean
  /** Whether another connection beside it would help when it is full. */
  allowsAnother(): boolean
  send(request: ProviderRequest, deadlineMs: number, done: (reply: ProviderReply) => void): void
  close(): void
}
