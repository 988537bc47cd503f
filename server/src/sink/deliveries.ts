// The deliveries that the box has accepted: the newest in memory, and all of them in a file if there is one.

import { closeSync, openSync, writeSync } from 'node:fs'
import type { Clock } from '../lib/clock.ts'
import type { SinkChannelName } from './service.ts'

export type SinkDelivery = {
  /** Milliseconds since the epoch. */
  at: number
  channel: SinkChannelName
  to: string
  /** Our id of the message, if the payload contains it. */
  message_id: string | null
  text: string | null
  /** Only for email. */
  subject?: string
  headers?: Record<string, string>
}

export type SinkDeliveries = {
  /** Writes the file before it returns, so the delivery is there once the request is answered. */
  add(delivery: Omit<SinkDelivery, 'at'>): void
  since(ms: number): SinkDelivery[]
  clear(): void
  close(): void
}

export const MOST_DELIVERIES = 100_000
/** If texts are long, fewer deliveries are kept, so that memory stays bounded. */
export const MOST_CHARACTERS = 64 * 1024 * 1024

export function createDeliveries(clock: Pick<Clock, 'now'>, file?: string): SinkDeliveries {
  const log = file === undefined ? undefined : openSync(file, 'a', 0o600)
  let kept: SinkDelivery[] = []
  let first = 0
  let characters = 0
  const sizeOf = ({ text, headers }: SinkDelivery) =>
    (text?.length ?? 0) + (headers ? JSON.stringify(headers).length : 0)

  function dropOldest() {
    characters -= sizeOf(kept[first++] as SinkDelivery)
    // Removed in bulk: removing entries one by one from the front of an array moves all others each time.
    if (first < kept.length / 2) return
    kept = kept.slice(first)
    first = 0
  }

  return {
    add(given) {
      const delivery = { at: clock.now().getTime(), ...given }
      if (log !== undefined) writeSync(log, `${JSON.stringify(delivery)}\n`)
      kept.push(delivery)
      characters += sizeOf(delivery)
      while (kept.length - first > MOST_DELIVERIES || characters > MOST_CHARACTERS) dropOldest()
    },
    since: (ms) => kept.slice(first).filter(({ at }) => at >= ms),
    clear() {
      kept = []
      first = 0
      characters = 0
    },
    close() {
      if (log !== undefined) closeSync(log)
    },
  }
}
