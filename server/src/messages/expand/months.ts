// Deliveries are stored by the month in which their message began to be expanded. Months exist some time ahead.

import type { Db } from '../../storage/db.ts'
import { addMonths, dropMonths } from '../../storage/partitions.ts'

const DAY_MS = 86_400_000
const DAYS_AHEAD = 62
/** What takes recipients for a day or two is of the month in which that began. */
const DAYS_BEHIND = 3

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

/** A place for what is expanded now. The schedule makes months long before; a server that finds it has not makes them itself. */
export type PrepareMonths = (now: Date) => Promise<void>

export function createPrepareMonths(db: Db): PrepareMonths {
  let prepared: { from: Date; until: Date } | undefined
  return async (now) => {
    if (prepared && now >= prepared.from && now < prepared.until) return
    const span = { from: now, until: daysAfter(now, DAYS_AHEAD) }
    await addMonths(db, 'deliveries', daysAfter(now, -DAYS_BEHIND), span.until)
    prepared = span
  }
}

/** What is older than the retention goes, a month at a time. */
export async function maintainDeliveryMonths(db: Db, now: Date, retentionDays: number): Promise<void> {
  await createPrepareMonths(db)(now)
  await dropMonths(db, 'deliveries', daysAfter(now, -retentionDays))
}
