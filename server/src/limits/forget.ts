import type { Db } from '../storage/db.ts'
import { deleteIdleCounters, findAllAppsWithIdleCounters, lockAppCounters, lockCensus } from './store.ts'

/**
 * Sweep up the counters, of all apps, that count nothing any more. App by app and behind the same locks as a decision:
 * one statement over all of them could lock rows in an order that a decision crosses.
 */
export async function forgetIdleCounters(db: Db, leaseMs: number): Promise<void> {
  for (const { appId } of await findAllAppsWithIdleCounters(db, leaseMs)) {
    await db.transaction(async (db) => {
      await lockCensus(db)
      await lockAppCounters(db, appId, leaseMs)
      await deleteIdleCounters(db, appId, leaseMs)
    })
  }
}
