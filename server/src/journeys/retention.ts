// Deletes runs, messages and passes when they are no longer needed.

import { findAllApps } from '../apps/store.ts'
import type { AppId, UserId } from '../lib/ids.ts'
import { readSending } from '../sending/read.ts'
import type { Db } from '../storage/db.ts'
import {
  deleteExpiredMessages,
  deleteExpiredPassesInPage,
  deleteExpiredRunsInPage,
  deletePassesOf,
  deleteRunsOf,
  endOfPage,
  endOfPasses,
  findArchivedBefore,
  lockJourneysOfForShare,
  type PassCursor,
} from './runs/lifecycle-store.ts'
import { EXCLUSIVE_SLOT } from './runs/run-store.ts'
import { COUNT_SHARD, changeCounts } from './stats-store.ts'
import { countEarlyExits } from './users/remove.ts'
import { deleteCallsOfUser } from './webhooks/call-store.ts'

const DAY_MS = 86_400_000
const PAGE = 50_000

/** A deleted user leaves every journey, and their past runs are deleted. The counts stay: they name nobody. */
export const deleteRunsOfUser = (db: Db, appId: AppId, userId: UserId): Promise<void> =>
  db.transaction(async (db) => {
    await deleteCallsOfUser(db, appId, userId)
    const journeyIds = await lockJourneysOfForShare(db, appId, userId)
    const gone = await deleteRunsOf(db, appId, userId, journeyIds)
    // After the runs: those who advance runs lock in this order, too.
    await deletePassesOf(db, appId, userId)
    const live = Map.groupBy(
      gone.filter(({ state }) => state === 'waiting'),
      ({ journeyId }) => journeyId,
    )
    for (const id of journeyIds)
      await changeCounts(db, appId, id, COUNT_SHARD.changes, countEarlyExits(id, live.get(id) ?? []))
  })

/**
 * Deletes runs that ended before the retention period, unless they keep their user from entering again, and all runs of journeys that
 * were archived before it. Every run is read once, by pages of ids: a daily job does not justify an index.
 */
export async function deleteExpiredRuns(db: Db, now: Date, retentionDays: number): Promise<void> {
  for (const { id: appId } of await findAllApps(db)) {
    const { settings } = await readSending(db, appId, now)
    const days = Math.min(retentionDays, settings.retentionDays ?? retentionDays)
    const before = new Date(now.getTime() - days * DAY_MS)
    const archived = await findArchivedBefore(db, appId, before)
    for (let after = EXCLUSIVE_SLOT; ; ) {
      const upTo = await endOfPage(db, appId, after, PAGE)
      await deleteExpiredRunsInPage(db, appId, { after, upTo }, before, archived)
      if (upTo === undefined) break
      after = upTo
    }
    await deleteExpiredMessages(db, appId, before)
    await forgetOldPasses(db, appId, now)
  }
}

/** Passes are counted by the day. A batch may have begun just before midnight, so the day before is kept, too. */
const PASSES_MS = 2 * DAY_MS

/** Every row is read, by pages: at most three days of rows exist. */
async function forgetOldPasses(db: Db, appId: AppId, now: Date): Promise<void> {
  const before = new Date(now.getTime() - PASSES_MS)
  let after: PassCursor | undefined = { journeyId: EXCLUSIVE_SLOT, userId: EXCLUSIVE_SLOT, nodeId: EXCLUSIVE_SLOT }
  while (after) {
    const upTo = await endOfPasses(db, appId, after, PAGE)
    await deleteExpiredPassesInPage(db, appId, { after, upTo }, before)
    after = upTo
  }
}
