// What the clock and the queue do with journeys: start one at its time, make one active, stop one at its time. Each step is one
// transaction that looks under the lock whether it is still wanted. None of them is an edit: versions stay as they are.

import type { AppId } from '../lib/ids.ts'
import type { Handlers } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { findBadUses } from './check-references.ts'
import type { JourneysContext } from './context.ts'
import { followChange } from './entry/follow.ts'
import { ACTIVATE_JOURNEY, activateJob, START_JOURNEY, STOP_JOURNEY, startJob, stopJob } from './jobs.ts'
import type { Journey, JourneyId, State } from './journey.ts'
import { usesOf } from './read-journey.ts'
import { findObstacles } from './states.ts'
import { lockJourney, updateJourneyRow } from './store.ts'

export const journeyHandlers = (ctx: JourneysContext): Handlers => ({
  [ACTIVATE_JOURNEY]: { run: ({ job }) => activateJourney(ctx, job.appId, job.key) },
  [START_JOURNEY]: { run: ({ job }) => startJourney(ctx, job.appId, job.key) },
  [STOP_JOURNEY]: { run: ({ job }) => stopJourney(ctx, job.appId, job.key) },
})

type Step = (db: Db, journey: Journey, now: Date) => Promise<Partial<Journey> | undefined>

/** Nothing happens to a journey that is gone, or in another state than this step is for. */
const inState = (ctx: JourneysContext, appId: AppId, id: JourneyId, state: State, step: Step): Promise<void> =>
  ctx.db.transaction(async (db) => {
    const journey = await lockJourney(db, appId, id)
    if (journey?.state !== state) return
    const now = ctx.now()
    const changes = await step(db, journey, now)
    if (!changes) return
    const after = { ...journey, ...changes, updatedAt: now }
    await updateJourneyRow(db, appId, after)
    await followChange(ctx, db, appId, state, after)
  })

const momentOf = ({ document: { schedule } }: Journey, name: 'start_at' | 'stop_at') =>
  schedule?.[name] ? new Date(schedule[name]) : undefined

/** The last step of an activation. */
export const activateJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId) =>
  inState(ctx, appId, id, 'processing', async (db, journey, now) => {
    const stopAt = momentOf(journey, 'stop_at')
    if (stopAt) await ctx.queue.enqueue(db, [stopJob(appId, id, stopAt)])
    return { state: 'active', startedAt: now }
  })

/** A journey that cannot start stays as it is, and says why. */
const startJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId) =>
  inState(ctx, appId, id, 'scheduled', async (db, journey, now) => {
    const startAt = momentOf(journey, 'start_at')
    // It was put off.
    if (startAt && startAt > now) {
      await ctx.queue.enqueue(db, [startJob(appId, id, startAt)])
      return undefined
    }
    const problems = [
      ...findObstacles(journey.document, 'now', now).map(({ title }) => title),
      ...(await findBadUses(db, appId, usesOf(journey.document))).map(({ use, demand }) => `${use.path} ${demand}`),
    ]
    if (problems.length > 0) return { scheduleError: problems.join('; ') }
    await ctx.queue.enqueue(db, [activateJob(appId, id)])
    return { state: 'processing', scheduleError: null }
  })

const stopJourney = (ctx: JourneysContext, appId: AppId, id: JourneyId) =>
  inState(ctx, appId, id, 'active', async (db, journey, now) => {
    const stopAt = momentOf(journey, 'stop_at')
    if (!stopAt) return undefined
    if (stopAt <= now) return { state: 'archived', archivedAt: now }
    await ctx.queue.enqueue(db, [stopJob(appId, id, stopAt)])
    return undefined
  })
