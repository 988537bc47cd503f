// The background jobs of journeys. Their key is the journey, so that a job that is enqueued twice is one job.

import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { JourneyAudience, JourneyId } from './journey.ts'
import { RUN_SHARDS, type RunShard } from './runs/run.ts'

/**
 * Retries for about a day, so that nobody has to release parked jobs after an outage of hours. A parked job would also swallow the
 * jobs that are enqueued under its key.
 */
export const RETRIED_FOR_A_DAY = { maxAttempts: 100 }

export const ACTIVATE_JOURNEY = 'journeys.activate'
export const START_JOURNEY = 'journeys.start'
export const STOP_JOURNEY = 'journeys.stop'

export const activateJob = (appId: AppId, id: JourneyId): NewJob => ({ appId, name: ACTIVATE_JOURNEY, key: id })

export const startJob = (appId: AppId, id: JourneyId, runAt: Date): NewJob => ({
  appId,
  name: START_JOURNEY,
  key: id,
  runAt,
})

export const stopJob = (appId: AppId, id: JourneyId, runAt: Date): NewJob => ({
  appId,
  name: STOP_JOURNEY,
  key: id,
  runAt,
})

export const CLEAR_JOURNEY = 'journeys.clear'

/** Deletes or stops the runs of a journey that is no longer active. The payload holds the progress. */
export const clearJob = (appId: AppId, id: JourneyId, payload: object = {}): NewJob => ({
  appId,
  name: CLEAR_JOURNEY,
  key: id,
  payload,
})

export const ADVANCE_RUNS = 'journeys.advance'

/** Advances the runs of one shard. Journeys with an event audience run in the direct lane, before those of whole segments. */
export const advanceJob = (
  appId: AppId,
  { id, audience }: { id: JourneyId; audience: Pick<JourneyAudience, 'kind'> },
  part: RunShard,
  runAt?: Date,
): NewJob => ({
  appId,
  name: ADVANCE_RUNS,
  key: `${id}/${part}`,
  lane: audience.kind === 'event_trigger' ? 'direct' : 'bulk',
  ...(runAt && { runAt }),
})

/** One job for each shard, after the journey was activated or changed. */
export const advanceJobs = (appId: AppId, journey: Parameters<typeof advanceJob>[1]): NewJob[] =>
  RUN_SHARDS.map((part) => advanceJob(appId, journey, part))

export function readAdvanceKey(key: string): { journeyId: JourneyId; part: RunShard } {
  const [journeyId = '', part = ''] = key.split('/')
  return { journeyId, part: Number(part) as RunShard }
}

export const DELIVER_CALLS = 'journeys.call'

/** Sends the pending calls of one journey webhook. Each webhook has a job of its own, so that a slow one delays no other. */
export const webhookCallsJob = (appId: AppId, webhookId: string, runAt?: Date): NewJob => ({
  appId,
  name: DELIVER_CALLS,
  key: webhookId,
  ...(runAt && { runAt }),
})

export const SWEEP_JOURNEY = 'journeys.sweep'

/** Looks for changes that only time has made. `isFresh`: the journey was activated or edited just now, so sweep again soon. */
export const sweepJob = (appId: AppId, id: JourneyId, runAt: Date, isFresh = false): NewJob => ({
  appId,
  name: SWEEP_JOURNEY,
  key: id,
  runAt,
  payload: { isFresh },
})
