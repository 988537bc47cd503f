// What the client needs to know of a connection, whichever version of HTTP it speaks.

import type { HttpRequest, Reply } from './exchange.ts'

/** Answers of providers are a line long. What is longer is cut: the status has said all. */
export const MOST_ANSWER_BYTES = 65_536

export type Session = {
  /** How many more requests it takes now. */
  free(): number
  /** False once it takes no more requests: the other side is leaving, or it is closed. */
  isOpen(): boolean
  isIdle(): boolean
  /** Whether another connection beside it would help when it is full. */
  wantsAnother(): boolean
  send(request: HttpRequest, deadlineMs: number, done: (reply: Reply) => void): void
  close(): void
}
