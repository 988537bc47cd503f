// Counts are kept for 400 days. No window reaches back further than 365 days, so a month that began before the oldest
// count is never read as a whole.

import { findAllApps } from '../../apps/store.ts'
import type { Db } from '../../storage/db.ts'
import { addMonths, dropMonths } from '../../storage/partitions.ts'
import { deleteOldFacts } from './load-store.ts'
import { deleteOldRollups } from './store.ts'

const DAY_MS = 86_400_000
const RETENTION_DAYS = 400
const DAYS_AHEAD = 62
const ROWS_AT_ONCE = 10_000

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

export const oldestRetained = (now: Date) => daysAfter(now, -RETENTION_DAYS)

/** Creates the partitions for every time at which something may be counted. */
export const preparePartitions = (db: Db, now: Date) =>
  addMonths(db, 'email_instants', oldestRetained(now), daysAfter(now, DAYS_AHEAD))

export async function maintainPartitions(db: Db, now: Date): Promise<void> {
  await addMonths(db, 'email_instants', now, daysAfter(now, DAYS_AHEAD))
  await dropMonths(db, 'email_instants', oldestRetained(now))
}

export async function deleteExpiredCounts(db: Db, now: Date): Promise<void> {
  const oldest = oldestRetained(now)
  for (const { id } of await findAllApps(db)) {
    while ((await deleteOldRollups(db, id, oldest, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
    while ((await deleteOldFacts(db, id, oldest, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
  }
}
