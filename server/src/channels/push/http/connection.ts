// What the client needs to know about a connection, whichever version of HTTP it uses.

import type { ProviderReply, ProviderRequest } from './exchange.ts'

/** Answers of providers are one line long. A longer one is truncated, because its status says enough. */
export const MAX_RESPONSE_BYTES = 65_536

export type HttpConnection = {
  /** How many more requests the connection accepts now. */
  freeSlots(): number
  /** False once the connection accepts no more requests, because the peer is closing it or it is closed. */
  isOpen(): boolean
  isIdle(): boolean
  /** Whether opening another connection would help when this one is full. */
  allowsAnother(): boolean
  send(request: ProviderRequest, deadlineMs: number, done: (reply: ProviderReply) => void): void
  close(): void
}
