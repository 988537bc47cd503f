// Clears what is left of a journey that was deleted, stopped, or is a draft again. Each batch looks at the state under the journey's
// lock: an activation clears the journey itself, and an active journey is left alone.

import type { AppId } from '../../lib/ids.ts'
import { cancelMessages } from '../../messages/cancel.ts'
import type { JobRun } from '../../queue/job.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { clearJob } from '../jobs.ts'
import type { JourneyId, JourneyState } from '../journey.ts'
import {
  deleteMessages,
  deletePasses,
  deleteRuns,
  endOfRuns,
  findMessageIds,
  stopRuns,
} from '../runs/lifecycle-store.ts'
import type { RunCursor } from '../runs/run-store.ts'
import { COUNT_SHARD, changeCounts, deleteCounts } from '../stats-store.ts'
import { lockJourney } from '../store.ts'
import { deleteCallsOfJourney } from '../webhooks/call-store.ts'

const AT_ONCE = 10_000
/** Then it is another app's turn. */
const BATCHES_AT_A_STRETCH = 20

/** `after`: the last run of an archived journey that was stopped. */
type Reach = { after?: RunCursor | undefined }

export const clearJourney = (ctx: JourneysContext) => async (work: JobRun) => {
  const { appId, key: id, payload } = work.job
  let reach = payload as Reach
  for (let batches = 0; batches < BATCHES_AT_A_STRETCH && !work.isStopping(); batches++) {
    const next = await clearSome(ctx, work, id, reach)
    if (!next) return
    reach = next
    await work.recordProgress(ctx.db)
  }
  await ctx.queue.enqueue(ctx.db, [clearJob(appId, id, reach)])
}

/** Answers the progress; undefined when nothing is left to do. */
const clearSome = (ctx: JourneysContext, work: JobRun, id: JourneyId, reach: Reach): Promise<Reach | undefined> =>
  ctx.db.transaction(async (db) => {
    const { appId } = work.job
    if (!(await work.isStillHeld(db))) return undefined
    const journey = await lockJourney(db, appId, id)
    const state: JourneyState | 'gone' = journey?.state ?? 'gone'
    if (state === 'processing' || state === 'active') return undefined
    if (state === 'archived') return stopSome(ctx, db, appId, id, reach.after)
    if (state === 'gone') {
      await cancelWork(ctx, db, appId, id)
      await deleteMessages(db, appId, id)
    }
    return (await clearRuns(db, appId, id)) ? undefined : {}
  })

/** Answers whether all runs are deleted. The counts are deleted with the last of them. */
export async function clearRuns(db: Db, appId: AppId, id: JourneyId): Promise<boolean> {
  const gone = await deleteRuns(db, appId, id, AT_ONCE)
  const live = gone.filter(({ state }) => state === 'waiting').length
  await changeCounts(db, appId, id, COUNT_SHARD.changes, [{ placeId: id, fact: 'started', by: -live }])
  if (gone.length === AT_ONCE || (await deletePasses(db, appId, id, AT_ONCE)) === AT_ONCE) return false
  await deleteCounts(db, appId, id)
  return true
}

/** An archived journey never becomes active again, so no run has to be stopped twice. */
async function stopSome(ctx: JourneysContext, db: Db, appId: AppId, id: JourneyId, after: RunCursor | undefined) {
  // Before any run is stopped: messages that are about to be sent are the most urgent.
  if (!after) await cancelWork(ctx, db, appId, id)
  const upTo = await endOfRuns(db, appId, id, after, AT_ONCE)
  const waited = await stopRuns(db, appId, id, { after, upTo }, ctx.now())
  const changes = waited.map(({ nodeId, total }) => ({ placeId: nodeId, fact: 'waiting', by: -total }))
  await changeCounts(db, appId, id, COUNT_SHARD.changes, changes)
  if (upTo) return { after: upTo }
  return (await deletePasses(db, appId, id, AT_ONCE)) === AT_ONCE ? { after } : undefined
}

/** Cancels messages and webhook calls that wait to be sent. The rows of an archived journey's messages stay: its stats depend on them. */
async function cancelWork({ queue, now }: JourneysContext, db: Db, appId: AppId, id: JourneyId): Promise<void> {
  await cancelMessages(db, queue, appId, await findMessageIds(db, appId, id), now())
  await deleteCallsOfJourney(db, appId, id)
}
