import type { Db } from '../storage/db.ts'
import { deleteIdleCounters, findAllAppsWithIdleCounters } from './store.ts'

/** Deletes the counters of all apps on which nothing counts any more. */
export async function sweepIdleCounters(db: Db, leaseMs: number): Promise<void> {
  for (const { appId } of await findAllAppsWithIdleCounters(db, leaseMs)) await deleteIdleCounters(db, appId, leaseMs)
}
