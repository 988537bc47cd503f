// Removes one user from a journey on request. It counts as an early exit, with the same rule about entering again.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { JourneysContext } from '../context.ts'
import { advanceJob } from '../jobs.ts'
import { type JourneyId, journeyNotFound } from '../journey.ts'
import { type EndedRun, exitRuns, lockRunsOf } from '../runs/lifecycle-store.ts'
import { COUNT_SHARD, type CountChange, changeCounts } from '../stats-store.ts'
import { lockJourneyForShare } from '../store.ts'
import { readUserQuery, resolveUser, type UserQuery } from './resolve-user.ts'

/** Answers the number of runs that ended. */
export async function removeUser(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  whom: UserQuery,
  by: RequestOrigin,
): Promise<number> {
  readUserQuery(whom)
  return ctx.db.transaction(async (db) => {
    const journey = await lockJourneyForShare(db, appId, id)
    if (!journey) throw journeyNotFound()
    const userId = await resolveUser(db, appId, whom)
    const runs = await lockRunsOf(db, appId, id, userId)
    if (runs.length === 0) return 0
    const now = ctx.now()
    const { audience, reentry_rules: reentry } = journey.document
    const isAgain = audience.kind === 'segment' && reentry
    const mayEnterAt = isAgain ? new Date(now.getTime() + reentry.duration_seconds * 1_000) : null
    const ids = runs.map(({ id }) => id)
    await exitRuns(db, appId, ids, mayEnterAt, now)
    await changeCounts(db, appId, id, COUNT_SHARD.changes, countEarlyExits(id, runs))
    await insertAuditEntries(
      db,
      appId,
      [
        {
          id: ctx.newId(),
          actor: actorOf(by),
          action: 'journey.remove_user',
          targetType: 'journey',
          targetId: id,
          detail: { onesignal_id: userId, run_ids: ids },
        },
      ],
      now,
    )
    if (mayEnterAt)
      await ctx.queue.enqueue(
        db,
        runs.map(({ part }) => advanceJob(appId, { id, audience }, part, mayEnterAt)),
      )
    return ids.length
  })
}

/** The changes of counts when runs end early. */
export const countEarlyExits = (journeyId: JourneyId, runs: readonly EndedRun[]): CountChange[] =>
  runs.flatMap(({ nodeId, hasArrived }) => [
    { placeId: journeyId, fact: 'exited_early', by: 1 },
    ...(nodeId ? [{ placeId: nodeId, fact: 'exited_early', by: 1 }] : []),
    ...(nodeId && hasArrived ? [{ placeId: nodeId, fact: 'waiting', by: -1 }] : []),
  ])
