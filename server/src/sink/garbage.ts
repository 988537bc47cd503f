// Answers that are none: more than anybody can want to read, and so slow that nobody can wait for their end.

import { randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

const PIECE = randomBytes(65_536)
const PIECES = 160
const BYTE_MS = 1_000

/** 10 MB, as fast as they are taken: what is not may not fill up the connection, which others use too. */
export async function pour(to: Writable): Promise<void> {
  for (let n = 0; n < PIECES; n++) {
    while (to.writableNeedDrain && !to.destroyed) await pause(5)
    if (to.destroyed || to.writableEnded) return
    to.write(PIECE)
  }
  to.end()
}

/** A byte each second, for as long as somebody is there. */
export async function trickle(to: Writable): Promise<void> {
  for (let next = 0; !to.destroyed; next = (next + 1) % PIECE.length) {
    to.write(PIECE.subarray(next, next + 1))
    await pause(BYTE_MS, undefined, { ref: false })
  }
}
