// A statement that finds something takes longer or shorter than one that finds nothing. A caller who names an external
// id or an address without proof must not learn from the duration what the answer conceals.

import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'

/** Runs the work and holds back its result or error until a whole number of steps has passed. */
export type ConcealTiming = <Result>(work: () => Promise<Result>) => Promise<Result>

/** Several times as long as a sign-in takes, so that nearly all of them are answered after exactly one step. */
export const TIMING_STEP_MS = 100

export function createConcealTiming(
  clock: Pick<Clock, 'leaseMs'>,
  wait: (ms: number) => Promise<unknown> = pause,
): ConcealTiming {
  return async (work) => {
    const began = clock.leaseMs()
    try {
      return await work()
    } finally {
      const tookMs = clock.leaseMs() - began
      await wait((Math.floor(tookMs / TIMING_STEP_MS) + 1) * TIMING_STEP_MS - tookMs)
    }
  }
}
