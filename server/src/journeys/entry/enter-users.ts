// Users who enter journeys: their runs, the count of those who came, and the work of moving them.

import type { AppId } from '../../lib/ids.ts'
import type { NewJob } from '../../queue/job.ts'
import type { Db } from '../../storage/db.ts'
import { advanceJob } from '../jobs.ts'
import type { JourneyId } from '../journey.ts'
import type { Compiled } from '../runs/compile-journey.ts'
import { type Part, partAt } from '../runs/run.ts'
import { insertRuns, type NewRun } from '../runs/run-store.ts'
import { COUNTS_OF, changeCountsOf } from '../stats-store.ts'

export type Entered = Awaited<ReturnType<typeof insertRuns>>

/** Whoever may not enter does not. */
export const enter = (db: Db, appId: AppId, list: readonly NewRun[], now: Date): Promise<Entered> =>
  list.length > 0 ? insertRuns(db, appId, partAt(now), list, now) : Promise.resolve([])

export async function countEntered(db: Db, appId: AppId, entered: Entered): Promise<void> {
  const sums = Map.groupBy(entered, ({ journeyId }) => journeyId)
  await changeCountsOf(
    db,
    appId,
    COUNTS_OF.entry,
    [...sums].map(([journeyId, list]) => ({ journeyId, placeId: journeyId, fact: 'started', by: list.length })),
  )
}

/** One job for each part of a journey of which something is to be looked at. */
export function advanceJobsFor(
  appId: AppId,
  journeys: ReadonlyMap<JourneyId, Compiled>,
  runs: Iterable<{ journeyId: JourneyId; part: Part }>,
): NewJob[] {
  const parts = new Map<string, { journey: Compiled; part: Part }>()
  for (const { journeyId, part } of runs) {
    const journey = journeys.get(journeyId)
    if (journey) parts.set(`${journeyId} ${part}`, { journey, part })
  }
  return [...parts.values()].map(({ journey, part }) => advanceJob(appId, journey, part))
}
