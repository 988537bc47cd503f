// What is asked of a dry run.

import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Journey } from '../journey.ts'

export const DAYS = { most: 90, usual: 30 }
/** Users; of a journey that events start, events. */
export const SAMPLE = { usual: 10_000, mostUsers: 1_000_000, mostEvents: 100_000 }
export const DAY_MS = 86_400_000
/** So much of the past is what the future is expected to be like. */
export const PAST_DAYS = 30

/** For an audience by event: the newest of what is known, as many days as are walked through. */
export const pastDays = (days: number) => Math.min(days, PAST_DAYS)

export type SimulationOptions = {
  appId: AppId
  journey: Journey
  days: number
  sample: number
  startAt: Date
  /** The real moment: where the past ends. */
  now: Date
}

export type SimulationRequest = { days?: number | null; sample?: number | 'all' | null; start_at?: string | null }

export function readSimulationOptions(
  appId: AppId,
  journey: Journey,
  { days, sample, start_at: start }: SimulationRequest,
  now: Date,
): SimulationOptions {
  const startAt = start === undefined || start === null ? now : new Date(start)
  // Also what is no moment at all, as a 30th of February.
  if (!(Math.abs(startAt.getTime() - now.getTime()) <= 366 * DAY_MS))
    throw invalid('start_at must be a moment within a year from now', { field: 'start_at' })
  const most = journey.document.audience.kind === 'segment' ? SAMPLE.mostUsers : SAMPLE.mostEvents
  const wanted = sample === 'all' ? most : (sample ?? SAMPLE.usual)
  return { appId, journey, days: days ?? DAYS.usual, sample: Math.min(wanted, most), startAt, now }
}
