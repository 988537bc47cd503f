// Handles the change feed of users: lets them enter journeys and wakes their runs. A batch of changes is one transaction with all that
// follows, so that a crash repeats nothing and loses nothing. Runs are not advanced here, but made due.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import type { Db } from '../../storage/db.ts'
import { enqueueFeedJob, takeFeedEntries } from '../../users/change-feed/change-feed.ts'
import type { FeedEntry } from '../../users/change-feed/feed.ts'
import { findPresence } from '../../users/presence-store.ts'
import type { JourneyId } from '../journey.ts'
import { matchesEvent } from '../nodes/match-event.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import type { RunId } from '../runs/run.ts'
import type { NewRun } from '../runs/run-store.ts'
import type { EntryContext } from './context.ts'
import { advanceJobsFor, countEntered, enterJourneys } from './enter-users.ts'
import { findMetDemands } from './judge-demands.ts'
import { type MeetsDemand, segmentDemandsOf, triggersOf } from './triggers.ts'
import { type UserEvent, wakeAffectedRuns } from './wake-runs.ts'

const AT_ONCE = 2_000
/** Then it is another app's turn. */
const BATCHES_AT_A_STRETCH = 20

export const handleUserChanges = (ctx: EntryContext) => async (work: JobRun) => {
  const { appId } = work.job
  for (let batches = 0; batches < BATCHES_AT_A_STRETCH && !work.isStopping(); batches++) {
    const hasMore = await ctx.db.transaction(async (db) => {
      if (!(await work.isStillHeld(db))) return false
      const hasMore = await reactToSome(ctx, db, appId)
      await work.recordProgress(db)
      return hasMore
    })
    if (!hasMore) return
  }
  await enqueueFeedJob(ctx.queue, ctx.db, appId)
}

/** Answers whether there may be more. Changes that concern no active journey are consumed as well. */
async function reactToSome(ctx: EntryContext, db: Db, appId: AppId): Promise<boolean> {
  // After the news, so that what a journey that has just begun was waiting for is not taken before it is known.
  const [news, live] = await Promise.all([takeFeedEntries(db, appId, AT_ONCE), ctx.live.lockAllForShare(db, appId)])
  const journeys = new Map(live.map((it) => [it.id, it]))
  const hasMore = news.length === AT_ONCE
  if (news.length === 0 || journeys.size === 0) return hasMore
  const now = ctx.now()
  const events = news.flatMap(eventNews)
  const changed = [...new Set(news.filter(({ kind }) => kind === 'change').map(({ userId }) => userId))]
  const demands = changed.length > 0 ? [...journeys.values()].flatMap((it) => segmentDemandsOf(triggersOf(it))) : []
  const holds = await findMetDemands(db, appId, demands, changed, now)

  const byEvent = await findByEvent(ctx, db, appId, journeys, events)
  const entering = [...byEvent, ...findBySegment(ctx, journeys, changed, holds)]
  const entered = await enterJourneys(db, appId, entering, now)
  const learnedAt = new Map(byEvent.map(({ id, learnedAt }): [RunId, Date] => [id, learnedAt]))
  const woken = await wakeAffectedRuns(db, appId, { journeys, news, events, changed, holds, learnedAt }, now)
  // All writers lock in this order: slots of users, runs, counts, jobs.
  await Promise.all([
    countEntered(db, appId, entered),
    ctx.queue.enqueue(db, advanceJobsFor(appId, journeys, [...entered, ...woken])),
  ])
  return hasMore
}

function eventNews({ userId, at, event }: FeedEntry): UserEvent[] {
  if (!event) return []
  const properties = event.properties as Record<string, unknown>
  return [{ userId, at, event: { ...event, at: event.at.toISOString(), properties } }]
}

type Journeys = ReadonlyMap<JourneyId, CompiledJourney>

/** Every event that matches the audience starts a run, unless it was recorded before the journey was activated. */
async function findByEvent(ctx: EntryContext, db: Db, appId: AppId, journeys: Journeys, events: readonly UserEvent[]) {
  const found: (NewRun & { learnedAt: Date })[] = []
  for (const { id: journeyId, audience, startedAt } of journeys.values()) {
    if (audience.kind !== 'event_trigger') continue
    for (const { userId, at, event } of events)
      if (matchesEvent(audience, event) && (startedAt === null || at >= startedAt))
        found.push({ id: ctx.newId(), journeyId, userId, event, learnedAt: at })
  }
  if (found.length === 0) return found
  const users = [...new Set(found.map(({ userId }) => userId))]
  const there = new Set((await findPresence(db, appId, users)).map(({ userId }) => userId))
  return found.filter(({ userId }) => there.has(userId))
}

function* findBySegment({ newId }: EntryContext, journeys: Journeys, changed: readonly UserId[], holds: MeetsDemand) {
  for (const journey of journeys.values()) {
    const { audience } = triggersOf(journey)
    if (!audience) continue
    for (const userId of changed) if (holds(userId, audience)) yield { id: newId(), journeyId: journey.id, userId }
  }
}
