// What is kept for as long as it is of use.

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

/** A deleted user leaves every journey they are in, and no trace in those they were in. The numbers stay: they name nobody. */
export const deleteRunsOfUser = (db: Db, appId: AppId, userId: UserId): Promise<void> =>
  db.transaction(async (db) => {
    await deleteCallsOfUser(db, appId, userId)
    const journeyIds = await lockJourneysOfForShare(db, appId, userId)
    const gone = await deleteRunsOf(db, appId, userId, journeyIds)
    // Whoever moves a run locks these after it.
    await deletePassesOf(db, appId, userId)
    const live = Map.groupBy(
      gone.filter(({ state }) => state === 'waiting'),
      ({ journeyId }) => journeyId,
    )
    for (const id of journeyIds)
      await changeCounts(db, appId, id, COUNT_SHARD.changes, countEarlyExits(id, live.get(id) ?? []))
  })

/**
 * Runs that ended long ago go, unless they keep their user from entering again, and so do all runs of journeys that were archived
 * then. Every run is looked at once, by pages of their ids: there is no index for what happens once a day.
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

/** Passes are counted by the day; whoever moves runs may have begun just before midnight, so the day before is kept too. */
const PASSES_MS = 2 * DAY_MS

/** Every row is looked at, by pages: those that are left are of two days, or three. */
async function forgetOldPasses(db: Db, appId: AppId, now: Date): Promise<void> {
  const before = new Date(now.getTime() - PASSES_MS)
  let after: PassCursor | undefined = { journeyId: EXCLUSIVE_SLOT, userId: EXCLUSIVE_SLOT, nodeId: EXCLUSIVE_SLOT }
  while (after) {
    const upTo = await endOfPasses(db, appId, after, PAGE)
    await deleteExpiredPassesInPage(db, appId, { after, upTo }, before)
    after = upTo
  }
}
