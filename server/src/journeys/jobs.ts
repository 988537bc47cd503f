// The work that journeys leave to be done. The key is the journey: what is asked for twice is one job.

import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { JourneyAudience, JourneyId } from './journey.ts'
import { RUN_SHARDS, type RunShard } from './runs/run.ts'

/**
 * An outage of an hour must not need somebody to release what was given up: about a day. What is asked for again meanwhile would
 * stay given up too.
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

/** Takes away, or stops, what is left of a journey that is no longer active. The payload says how far that has come. */
export const clearJob = (appId: AppId, id: JourneyId, payload: object = {}): NewJob => ({
  appId,
  name: CLEAR_JOURNEY,
  key: id,
  payload,
})

export const ADVANCE_RUNS = 'journeys.advance'

/** Moves the runs of one part. Those of journeys that an event starts go before those of whole segments. */
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

/** All that have something to do since the journey began, or was changed. */
export const advanceJobs = (appId: AppId, journey: Parameters<typeof advanceJob>[1]): NewJob[] =>
  RUN_SHARDS.map((part) => advanceJob(appId, journey, part))

export function readAdvanceKey(key: string): { journeyId: JourneyId; part: RunShard } {
  const [journeyId = '', part = ''] = key.split('/')
  return { journeyId, part: Number(part) as RunShard }
}

export const DELIVER_CALLS = 'journeys.call'

/** Tells a receiver of send_webhook what it is to be told: a slow one holds up nobody else. */
export const webhookCallsJob = (appId: AppId, webhookId: string, runAt?: Date): NewJob => ({
  appId,
  name: DELIVER_CALLS,
  key: webhookId,
  ...(runAt && { runAt }),
})

export const SWEEP_JOURNEY = 'journeys.sweep'

/** Looks for what the passing of time has changed. `isFresh`: the journey is new or was changed just now, so look again soon. */
export const sweepJob = (appId: AppId, id: JourneyId, runAt: Date, isFresh = false): NewJob => ({
  appId,
  name: SWEEP_JOURNEY,
  key: id,
  runAt,
  payload: { isFresh },
})
