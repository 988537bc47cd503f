import { findAllApps } from '../../apps/store.ts'
import type { Db } from '../../storage/db.ts'
import { deleteOldSoftBounces } from './store.ts'

/** Deletes soft bounces that are too old to count, of all apps. */
export async function deleteExpiredSoftBounces(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db)) await deleteOldSoftBounces(db, id, now)
}
