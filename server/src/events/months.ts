// Events are stored by the month in which they happened. Months exist for as far back as events are taken, and some ahead.

import type { Db } from '../storage/db.ts'
import { addMonths, dropMonths } from '../storage/partitions.ts'

const DAY_MS = 86_400_000
const DAYS_AHEAD = 62
/** Between the last event that is taken into a month and its end: servers' clocks and statements under way. */
const SPARE_DAYS = 1

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

export type EventMonths = {
  /** What happened before this is taken no more. */
  oldest(now: Date): Date
  /** A place for everything from then until now. */
  prepare(now: Date): Promise<void>
}

/** The schedule makes months long before they are needed; a server that finds it has not makes them itself. */
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

/** What is older than the retention goes, a month at a time. */
export async function maintainEventMonths(db: Db, now: Date, retentionDays: number): Promise<void> {
  await createEventMonths({ db, retentionDays }).prepare(now)
  await dropMonths(db, 'events', daysAfter(now, -retentionDays - SPARE_DAYS))
}
