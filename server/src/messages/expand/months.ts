// Deliveries are partitioned by the month in which their message was expanded first. Partitions are created ahead of
// time.

import type { Db } from '../../storage/db.ts'
import { addMonths, dropMonths } from '../../storage/partitions.ts'

const DAY_MS = 86_400_000
const DAYS_AHEAD = 62
/** Open messages take recipients for a day or two, in the month in which they were opened. */
const DAYS_BEHIND = 3

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

/**
 * Makes sure the current month exists. The schedule creates months long before; a server that starts late creates its
 * own.
 */
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

/** Creates months ahead and drops those older than the retention. */
export async function maintainDeliveryMonths(db: Db, now: Date, retentionDays: number): Promise<void> {
  await createPrepareMonths(db)(now)
  await dropMonths(db, 'deliveries', daysAfter(now, -retentionDays))
}
