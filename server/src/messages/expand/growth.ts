// A large message changes what its month is like, and statements on it are planned by that: who makes it grow has it looked at anew.

import type { Db } from '../../storage/db.ts'
import { analyzeMonth } from '../../storage/partitions.ts'
import type { MessageId } from '../message.ts'
import { RANGE_SIZE } from './ranges.ts'

export type GrowthTracker = {
  /** So many deliveries were written, or will be when the transaction ends. */
  record(id: MessageId, count: number): void
  /** After the transaction. */
  analyzeIfGrown(now: Date): Promise<void>
}

const MAX_TRACKED_MESSAGES = 1_000

export function createGrowthTracker(db: Db): GrowthTracker {
  /** By this process. */
  const counts = new Map<MessageId, number>()
  let isDue = false
  return {
    record(id, count) {
      const before = counts.get(id) ?? 0
      if (counts.size >= MAX_TRACKED_MESSAGES) counts.clear()
      counts.set(id, before + count)
      isDue ||= hasGrown(before, before + count)
    },
    async analyzeIfGrown(now) {
      if (!isDue) return
      isDue = false
      await analyzeMonth(db, 'deliveries', now)
    },
  }
}

/**
 * Past a quarter of a range, 1, 4, 16, … of them. With fewer it takes longer than it spares: to who does not know of them, every slice
 * that is sent costs a look at all of the message.
 */
function hasGrown(before: number, after: number): boolean {
  const power = (count: number) => Math.max(-2, Math.floor(Math.log2(count / RANGE_SIZE) / 2))
  return power(after) > power(before)
}
