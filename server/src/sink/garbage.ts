// Invalid answers: one that is longer than any client wants to read, and one that is too slow to wait for.

import { randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

const PIECE = randomBytes(65_536)
const PIECES = 160
const BYTE_MS = 1_000

/**
 * Sends 10 MB, as fast as the client reads: unread data must not fill up the connection, which other requests use too.
 */
export async function pour(to: Writable): Promise<void> {
  for (let n = 0; n < PIECES; n++) {
    while (to.writableNeedDrain && !to.destroyed) await pause(5)
    if (to.destroyed || to.writableEnded) return
    to.write(PIECE)
  }
  to.end()
}

/** Sends one byte per second until the client is gone. */
export async function trickle(to: Writable): Promise<void> {
  for (let next = 0; !to.destroyed; next = (next + 1) % PIECE.length) {
    to.write(PIECE.subarray(next, next + 1))
    await pause(BYTE_MS, undefined, { ref: false })
  }
}
