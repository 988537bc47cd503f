// Jobs that start a journey at its time, activate it, and stop it at its time. Each step is one transaction that checks under the lock
// whether it is still wanted. None of them makes a version. An activation takes many steps: the audience enters by ranges, and runs
// wait until the last one.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { JobHandlers, JobRun } from '../../queue/job.ts'
import { AUDIENCE_SCAN_HANDLER, type ScanAudience } from '../../segments/scan.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { findBrokenReferences } from '../document/check-references.ts'
import { referencesOf } from '../document/read-document.ts'
import { refreshTriggers } from '../entry/follow-journey.ts'
import {
  ACTIVATE_JOURNEY,
  activateJob,
  advanceJobs,
  CLEAR_JOURNEY,
  clearJob,
  RETRIED_FOR_A_DAY,
  START_JOURNEY,
  STOP_JOURNEY,
  startJob,
  stopJob,
} from '../jobs.ts'
import type { Journey, JourneyId, JourneyState } from '../journey.ts'
import { findProgress, writeProgress } from '../runs/lifecycle-store.ts'
import { findJourney, lockJourney, updateJourneyRow } from '../store.ts'
import { clearJourney, clearRuns } from './clear.ts'
import { type Entrants, enterUsers, findEntrants } from './enter-audience.ts'
import { findObstacles } from './transitions.ts'

/** Then it is another app's turn. */
const STEPS_IN_A_TURN = 20
/** The same where the audience is expensive. */
const MAX_TURN_MS = 60_000

export const journeyHandlers = (ctx: JourneysContext, scanAudience: ScanAudience): JobHandlers => ({
  [ACTIVATE_JOURNEY]: {
    run: activateJourney({ ...ctx, scanAudience }),
    ...AUDIENCE_SCAN_HANDLER,
    ...RETRIED_FOR_A_DAY,
  },
  [CLEAR_JOURNEY]: { run: clearJourney(ctx), ...RETRIED_FOR_A_DAY },
  [START_JOURNEY]: { run: ({ job }) => startJourney(ctx, job.appId, job.key), ...RETRIED_FOR_A_DAY },
  [STOP_JOURNEY]: { run: ({ job }) => stopJourney(ctx, job.appId, job.key), ...RETRIED_FOR_A_DAY },
})

type Step = (db: Db, journey: Journey, now: Date) => Promise<Partial<Journey> | undefined>

/** Does nothing to a journey that was deleted or is in another state. */
const inState = (ctx: JourneysContext, appId: AppId, id: JourneyId, state: JourneyState, step: Step): Promise<void> =>
  ctx.db.transaction(async (db) => {
    const journey = await lockJourney(db, appId, id)
    if (journey?.state !== state) return
    const now = ctx.now()
    const changes = await step(db, journey, now)
    if (!changes) return
    const after = { ...journey, ...changes, updatedAt: now }
    await updateJourneyRow(db, appId, after)
    await refreshTriggers(ctx, db, appId, state, after)
  })

const momentOf = ({ document: { schedule } }: Journey, name: 'start_at' | 'stop_at') =>
  schedule?.[name] ? new Date(schedule[name]) : undefined

type ActivationContext = JourneysContext & { scanAudience: ScanAudience }

const activateJourney = (ctx: ActivationContext) => async (work: JobRun) => {
  const { appId, key } = work.job
  const began = performance.now()
  let size: number | undefined
  for (let steps = 0; steps < STEPS_IN_A_TURN && !work.isStopping(); steps++) {
    const found = await findNextEntrants(ctx, work, key, size)
    size = found?.entrants.nextSize
    if (!(await activateFurther(ctx, work, key, found))) return
    await work.recordProgress(ctx.db)
    if (performance.now() - began > MAX_TURN_MS) break
  }
  await ctx.queue.enqueue(ctx.db, [activateJob(appId, key)])
}

/** The users who enter next, and the subscription after which they were searched. */
type Found = { after: SubscriptionId | null; version: number; entrants: Entrants }

/** The search may take long, so nothing is locked. Undefined while runs of an earlier activation have to be cleared. */
async function findNextEntrants(
  ctx: ActivationContext,
  { job: { appId }, signal }: JobRun,
  id: JourneyId,
  size: number | undefined,
): Promise<Found | undefined> {
  const journey = await findJourney(ctx.db, appId, id)
  const progress = await findProgress(ctx.db, appId, id)
  if (journey?.state !== 'processing' || !progress?.isCleared) return undefined
  const { enteredTo } = progress
  const options = { after: enteredTo ?? undefined, size, signal }
  const entrants = await findEntrants(ctx, { appId, now: ctx.now() }, journey, options)
  return { after: enteredTo, version: journey.version, entrants }
}

/** One step; answers whether there are more. It begins where the last one ended, whichever worker did that. */
const activateFurther = (
  ctx: ActivationContext,
  work: JobRun,
  id: JourneyId,
  found: Found | undefined,
): Promise<boolean> =>
  ctx.db.transaction(async (db) => {
    const { appId } = work.job
    if (!(await work.isStillHeld(db))) return false
    const journey = await lockJourney(db, appId, id)
    if (journey?.state !== 'processing') return false
    const now = ctx.now()
    const progress = await findProgress(db, appId, id)
    if (!progress?.isCleared) {
      const isCleared = await clearRuns(db, appId, id)
      await writeProgress(db, appId, id, { isCleared, enteredTo: null })
      return true
    }
    // The journey was cleared, changed or activated again since the search: search again.
    if (!found || found.version !== journey.version || found.after !== progress.enteredTo) return true
    const { ids, upTo } = found.entrants
    await enterUsers(db, appId, journey, { ids, seed: ctx.newId() }, now)
    if (upTo !== undefined) {
      await writeProgress(db, appId, id, { isCleared: true, enteredTo: upTo })
      return true
    }
    const after: Journey = { ...journey, state: 'active', startedAt: now, updatedAt: now }
    await updateJourneyRow(db, appId, after)
    await refreshTriggers(ctx, db, appId, journey.state, after)
    const stopAt = momentOf(journey, 'stop_at')
    const { audience } = journey.document
    await ctx.queue.enqueue(db, [
      ...(stopAt ? [stopJob(appId, id, stopAt)] : []),
      ...advanceJobs(appId, { id, audience }),
    ])
    return false
  })

/** A journey that cannot start stays scheduled, and its schedule says why. */
const startJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId) =>
  inState(ctx, appId, id, 'scheduled', async (db, journey, now) => {
    const startAt = momentOf(journey, 'start_at')
    // The start was postponed.
    if (startAt && startAt > now) {
      await ctx.queue.enqueue(db, [startJob(appId, id, startAt)])
      return undefined
    }
    const problems = [
      ...findObstacles(journey.document, 'now', now).map(({ title }) => title),
      ...(await findBrokenReferences(db, appId, referencesOf(journey.document))).map(
        ({ reference, demand }) => `${reference.path} ${demand}`,
      ),
    ]
    if (problems.length > 0) return { scheduleError: problems.join('; ') }
    await ctx.queue.enqueue(db, [activateJob(appId, id)])
    return { state: 'processing', scheduleError: null }
  })

const stopJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId) =>
  inState(ctx, appId, id, 'active', async (db, journey, now) => {
    const stopAt = momentOf(journey, 'stop_at')
    if (!stopAt) return undefined
    if (stopAt <= now) {
      await ctx.queue.enqueue(db, [clearJob(appId, id)])
      return { state: 'archived', archivedAt: now }
    }
    await ctx.queue.enqueue(db, [stopJob(appId, id, stopAt)])
    return undefined
  })
