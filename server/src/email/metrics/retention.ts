// What is counted is kept for 400 days. No window reaches back further than 365, so a month that began before that is never
// asked for as a whole.

import { findAllApps } from '../../apps/store.ts'
import type { Db } from '../../storage/db.ts'
import { addMonths, dropMonths } from '../../storage/partitions.ts'
import { deleteOldFacts } from './load-store.ts'
import { deleteOldRollups } from './store.ts'

const DAY_MS = 86_400_000
const KEPT_DAYS = 400
const DAYS_AHEAD = 62
const ROWS_AT_ONCE = 10_000

const daysAfter = (time: Date, days: number) => new Date(time.getTime() + days * DAY_MS)

export const oldestKept = (now: Date) => daysAfter(now, -KEPT_DAYS)

/** A place for everything that may be counted. */
export const prepareMonths = (db: Db, now: Date) =>
  addMonths(db, 'email_instants', oldestKept(now), daysAfter(now, DAYS_AHEAD))

export async function keepMonths(db: Db, now: Date): Promise<void> {
  await addMonths(db, 'email_instants', now, daysAfter(now, DAYS_AHEAD))
  await dropMonths(db, 'email_instants', oldestKept(now))
}

export async function forgetOldCounts(db: Db, now: Date): Promise<void> {
  const oldest = oldestKept(now)
  for (const { id } of await findAllApps(db)) {
    while ((await deleteOldRollups(db, id, oldest, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
    while ((await deleteOldFacts(db, id, oldest, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
  }
}
