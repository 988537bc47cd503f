// Plans of statements depend on the statistics of a month's deliveries. When a large message makes the month grow, it
// is analyzed again.

import type { Db } from '../../storage/db.ts'
import { analyzeMonth } from '../../storage/partitions.ts'
import type { GrowthTracker } from '../engine/types.ts'
import type { MessageId } from '../message.ts'
import { RANGE_SIZE } from './ranges.ts'

const MAX_TRACKED_MESSAGES = 1_000

export function createGrowthTracker(db: Db): GrowthTracker {
  /** Counts only the deliveries that this process wrote. */
  const counts = new Map<MessageId, number>()
  let isDue = false
  return {
    record(id, count) {
      const before = counts.get(id) ?? 0
      if (counts.size >= MAX_TRACKED_MESSAGES) counts.clear()
      counts.set(id, before + count)
      isDue ||= hasGrownEnough(before, before + count)
    },
    async analyzeIfGrown(now) {
      if (!isDue) return
      isDue = false
      await analyzeMonth(db, 'deliveries', now)
    },
  }
}

/**
 * Returns true once the count passes a quarter of a range, and again at 1, 4, 16, … ranges. Without new statistics,
 * every batch reads all deliveries of the message; below a quarter of a range, that costs less than analyzing.
 */
function hasGrownEnough(before: number, after: number): boolean {
  const power = (count: number) => Math.max(-2, Math.floor(Math.log2(count / RANGE_SIZE) / 2))
  return power(after) > power(before)
}
