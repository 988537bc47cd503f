// How long a template takes per recipient, which decides how many recipients a slice has; and how often in a row it has hit its limit.

import type { AppId } from '../../lib/ids.ts'
import { DEADLINE_MS, MAX_SLICE, type Step } from './worker-protocol.ts'

/** A slice is meant to take about this long: then it is the turn of another app. */
const SLICE_MS = 50
/** Assumed of templates that were not rendered yet. */
const FIRST_GUESS_MS = 5
/** Templates that take longer than this per recipient are kept away from the reserved process. */
const SLOW_MS = 25
/** Weight of the newest measurement. */
const NEWEST = 0.3
const MAX_REMEMBERED = 2_000
/** A template that hits its limit so often in a row is given up. */
export const MAX_HITS_IN_A_ROW = 5

/** `fingerprint`: of content that can be suspended. */
export type Pace = { fingerprint: string | undefined; msPerStep: number | undefined; hitsInARow: number }

export const newPace = (fingerprint?: string): Pace => ({ fingerprint, msPerStep: undefined, hitsInARow: 0 })

export function notePace(pace: Pace, ms: number): void {
  pace.msPerStep = pace.msPerStep === undefined ? ms : pace.msPerStep + (ms - pace.msPerStep) * NEWEST
}

/** Compiling is slow by nature. */
const expectedMs = (step: Step, { msPerStep }: Pace) =>
  msPerStep ?? (step.do === 'compile' ? DEADLINE_MS.compile : FIRST_GUESS_MS)

export const isSlow = (step: Step, pace: Pace) => expectedMs(step, pace) > SLOW_MS

/** How many of these steps, from the first on, make a slice: one at least. */
export function countSlice(steps: readonly Step[], paces: readonly Pace[], from: number, to: number): number {
  let totalMs = 0
  let count = 0
  while (count < MAX_SLICE && from + count < to) {
    totalMs += expectedMs(steps[from + count] as Step, paces[from + count] as Pace)
    if (count > 0 && totalMs > SLICE_MS) break
    count++
  }
  return count
}

/** The paces of content that is rendered in many calls; those used longest ago are forgotten first. */
export function createPaces() {
  const paces = new Map<string, Pace>()
  return {
    find(appId: AppId, fingerprint: string): Pace {
      const key = `${appId} ${fingerprint}`
      const pace = paces.get(key) ?? newPace(fingerprint)
      paces.delete(key)
      paces.set(key, pace)
      const [oldest] = paces.keys()
      if (paces.size > MAX_REMEMBERED && oldest !== undefined) paces.delete(oldest)
      return pace
    },
  }
}
