// Lets users enter journeys: inserts their runs, counts them, and makes the jobs that advance them.

import type { AppId } from '../../lib/ids.ts'
import type { NewJob } from '../../queue/job.ts'
import type { Db } from '../../storage/db.ts'
import { advanceJob } from '../jobs.ts'
import type { JourneyId } from '../journey.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { type RunShard, shardAt } from '../runs/run.ts'
import { insertRuns, type NewRun } from '../runs/run-store.ts'
import { COUNT_SHARD, changeCountsOf } from '../stats-store.ts'

export type Entered = Awaited<ReturnType<typeof insertRuns>>

/** Users who may not enter are skipped. */
export const enterJourneys = (db: Db, appId: AppId, list: readonly NewRun[], now: Date): Promise<Entered> =>
  list.length > 0 ? insertRuns(db, appId, shardAt(now), list, now) : Promise.resolve([])

export async function countEntered(db: Db, appId: AppId, entered: Entered): Promise<void> {
  const sums = Map.groupBy(entered, ({ journeyId }) => journeyId)
  await changeCountsOf(
    db,
    appId,
    COUNT_SHARD.entry,
    [...sums].map(([journeyId, list]) => ({ journeyId, placeId: journeyId, fact: 'started', by: list.length })),
  )
}

/** One job for each shard of a journey that has due runs. */
export function advanceJobsFor(
  appId: AppId,
  journeys: ReadonlyMap<JourneyId, CompiledJourney>,
  runs: Iterable<{ journeyId: JourneyId; part: RunShard }>,
): NewJob[] {
  const parts = new Map<string, { journey: CompiledJourney; part: RunShard }>()
  for (const { journeyId, part } of runs) {
    const journey = journeys.get(journeyId)
    if (journey) parts.set(`${journeyId} ${part}`, { journey, part })
  }
  return [...parts.values()].map(({ journey, part }) => advanceJob(appId, journey, part))
}
