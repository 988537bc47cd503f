// Events are partitioned by the month in which they happened. Partitions exist for the whole retention, and for some
// months ahead.

import type { Db } from '../storage/db.ts'
import { addMonths, dropMonths } from '../storage/partitions.ts'

const DAY_MS = 86_400_000
const DAYS_AHEAD = 62
/** Added to the retention before a month is dropped, for differing clocks of servers and statements under way. */
const SPARE_DAYS = 1

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

export type EventMonths = {
  /** Events that happened before this are refused. */
  oldest(now: Date): Date
  /** Creates the partitions for everything from then until now. */
  prepare(now: Date): Promise<void>
}

/** The schedule creates partitions long before they are needed; a server that finds one missing creates it itself. */
export function createEventMonths({ db, retentionDays }: { db: Db; retentionDays: number }): EventMonths {
  let prepared: { from: Date; until: Date } | undefined
  const oldest = (now: Date) => daysAfter(now, -retentionDays)
  return {
    oldest,
    async prepare(now) {
      if (prepared && oldest(now) >= prepared.from && now < prepared.until) return
      const span = { from: oldest(now), until: daysAfter(now, DAYS_AHEAD) }
      await addMonths(db, 'events', span.from, span.until)
      prepared = span
    },
  }
}

/** Drops what is older than the retention, a month at a time. */
export async function maintainEventMonths(db: Db, now: Date, retentionDays: number): Promise<void> {
  await createEventMonths({ db, retentionDays }).prepare(now)
  await dropMonths(db, 'events', daysAfter(now, -retentionDays - SPARE_DAYS))
}
