// Measures how long a template takes per recipient, which decides how many recipients are in a batch, and how often in
// a row it has hit its time limit.

import type { AppId } from '../../lib/ids.ts'
import { MAX_BATCH_STEPS, type RenderStep, STEP_DEADLINE_MS } from './worker-protocol.ts'

/** The target duration of a batch, after which another app gets its turn. */
const BATCH_TARGET_MS = 50
/** Assumed for templates that were not rendered yet. */
const FIRST_GUESS_MS = 5
/** Templates that take longer than this per recipient may not use the reserved process. */
const SLOW_MS = 25
/** The weight of the newest measurement in the moving average. */
const NEWEST_WEIGHT = 0.3
const MAX_REMEMBERED = 2_000
/** A template that hits its limit this many times in a row is given up. */
export const MAX_CONSECUTIVE_TIMEOUTS = 5

/** `fingerprint` is present for content that can be suspended. */
export type StepTiming = { fingerprint: string | undefined; msPerStep: number | undefined; consecutiveTimeouts: number }

export const newTiming = (fingerprint?: string): StepTiming => ({
  fingerprint,
  msPerStep: undefined,
  consecutiveTimeouts: 0,
})

export function recordDuration(pace: StepTiming, ms: number): void {
  pace.msPerStep = pace.msPerStep === undefined ? ms : pace.msPerStep + (ms - pace.msPerStep) * NEWEST_WEIGHT
}

/** Compiling is slow by nature. */
const expectedMs = (step: RenderStep, { msPerStep }: StepTiming) =>
  msPerStep ?? (step.do === 'compile' ? STEP_DEADLINE_MS.compile : FIRST_GUESS_MS)

export const isSlowStep = (step: RenderStep, pace: StepTiming) => expectedMs(step, pace) > SLOW_MS

/** How many of these steps, from the first on, make up a batch; at least one. */
export function countBatchSteps(
  steps: readonly RenderStep[],
  paces: readonly StepTiming[],
  from: number,
  to: number,
): number {
  let totalMs = 0
  let count = 0
  while (count < MAX_BATCH_STEPS && from + count < to) {
    totalMs += expectedMs(steps[from + count] as RenderStep, paces[from + count] as StepTiming)
    if (count > 0 && totalMs > BATCH_TARGET_MS) break
    count++
  }
  return count
}

/** The timings of content that is rendered in many calls. The least recently used are forgotten first. */
export function createTimings() {
  const paces = new Map<string, StepTiming>()
  return {
    find(appId: AppId, fingerprint: string): StepTiming {
      const key = `${appId} ${fingerprint}`
      const pace = paces.get(key) ?? newTiming(fingerprint)
      paces.delete(key)
      paces.set(key, pace)
      const [oldest] = paces.keys()
      if (paces.size > MAX_REMEMBERED && oldest !== undefined) paces.delete(oldest)
      return pace
    },
  }
}
