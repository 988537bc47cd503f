import { findAllApps } from '../apps/store.ts'
import type { Db } from '../storage/db.ts'
import { deleteCountsBefore } from './store.ts'

/** The longest range that can be requested is 31 days. */
const KEPT_MS = 62 * 86_400_000
const ROWS_AT_ONCE = 10_000

export async function deleteExpiredOutcomeCounts(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - KEPT_MS)
  for (const { id } of await findAllApps(db))
    while ((await deleteCountsBefore(db, id, before, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
}
