// One call for rendering: which of its steps nobody works on yet, how they are cut into slices, and what came out. Slices are cut when
// the call has its turn, so that each is as large as the pace measured by then allows.

import type { AppId } from '../../lib/ids.ts'
import type { JobLane } from '../../queue/job.ts'
import { countSlice, isSlow, MAX_HITS_IN_A_ROW, notePace, type Pace } from './step-timing.ts'
import type { SliceOutcome } from './worker-process.ts'
import { DEADLINE_MS, type Slice, type Step, type StepResult, TAKES_TOO_LONG } from './worker-protocol.ts'

export type RenderFailure = Extract<StepResult, { ok: false }>

/** `isSuspect`: one of these steps had its process ended, so they are handed out one by one until it is known which. */
type Range = { from: number; to: number; isSuspect: boolean }
export type CallSlice = Slice & Range

export type RenderCall = {
  appId: AppId
  lane: JobLane
  /** Steps that nobody works on. */
  waitingSteps(): number
  /** Those, and the ones under way. */
  unsettledSteps(): number
  /** Whether the template whose turn is next is known to be slow. */
  isSlow(): boolean
  /** Only while steps are waiting. */
  takeSlice(): CallSlice
  settle(slice: CallSlice, outcome: SliceOutcome): void
  fail(error: unknown): void
}

export type CallParts = { appId: AppId; lane: JobLane; steps: readonly Step[]; paces: readonly Pace[]; nowMs: number }

export function createCall({ appId, lane, steps, paces, nowMs }: CallParts) {
  const { promise, resolve, reject } = Promise.withResolvers<StepResult[]>()
  const results: StepResult[] = new Array(steps.length)
  const ranges: Range[] = [{ from: 0, to: steps.length, isSuspect: false }]
  const givenUp = new Set<Pace>()
  let unsettled = steps.length

  const stepAt = (index: number) => steps[index] as Step
  const paceAt = (index: number) => paces[index] as Pace

  function settleStep(index: number, result: StepResult) {
    results[index] = result
    unsettled--
  }

  function settleHit(index: number, failure: RenderFailure) {
    const pace = paceAt(index)
    pace.hitsInARow++
    if (pace.hitsInARow < MAX_HITS_IN_A_ROW) return settleStep(index, failure)
    givenUp.add(pace)
    // Whoever suspends it decides when it is tried again, and then it starts anew.
    pace.hitsInARow = 0
    settleStep(index, asGivenUp(pace, failure))
  }

  /** Steps of templates that were given up need no process. */
  function skipGivenUp() {
    if (givenUp.size > 0)
      for (const range of ranges.splice(0)) {
        let from = range.from
        for (let index = range.from; index <= range.to; index++) {
          const isGivenUp = index < range.to && givenUp.has(paceAt(index))
          if (!isGivenUp && index < range.to) continue
          if (index > from) ranges.push({ ...range, from, to: index })
          if (isGivenUp) settleStep(index, asGivenUp(paceAt(index), failureOf(stepAt(index), TAKES_TOO_LONG)))
          from = index + 1
        }
      }
    if (unsettled === 0) resolve(results)
  }

  function settleEnded({ from, to, isSuspect }: Range, because: string) {
    const pace = paceAt(from)
    const isAlone = to - from === 1
    // Ended alone and for the second time. A machine that paused, or a process filled by others of the slice, would be through.
    const isCulprit = isAlone && (isSuspect || pace.hitsInARow > 0)
    if (!isCulprit) return ranges.unshift({ from, to, isSuspect: true })
    notePace(pace, DEADLINE_MS[stepAt(from).do])
    settleHit(from, failureOf(stepAt(from), because))
    const [next] = ranges
    if (isSuspect && next?.from === to) next.isSuspect = false
    return undefined
  }

  const call: RenderCall = {
    appId,
    lane,
    waitingSteps: () => ranges.reduce((sum, { from, to }) => sum + to - from, 0),
    unsettledSteps: () => unsettled,
    isSlow: () => ranges[0] !== undefined && isSlow(stepAt(ranges[0].from), paceAt(ranges[0].from)),
    takeSlice() {
      const range = ranges[0] as Range
      const { from, isSuspect } = range
      const to = from + (isSuspect ? 1 : countSlice(steps, paces, from, range.to))
      if (to === range.to) ranges.shift()
      else range.from = to
      return { from, to, isSuspect, steps: steps.slice(from, to), nowMs }
    },
    settle({ from, to, isSuspect }, outcome) {
      for (const [offset, result] of outcome.results.entries()) {
        const pace = paceAt(from + offset)
        notePace(pace, outcome.tookMs[offset] ?? 0)
        if (!result.ok && result.message === TAKES_TOO_LONG) settleHit(from + offset, result)
        else {
          pace.hitsInARow = 0
          settleStep(from + offset, result)
        }
      }
      const ended = from + outcome.results.length
      if (outcome.because !== undefined && ended < to) settleEnded({ from: ended, to, isSuspect }, outcome.because)
      skipGivenUp()
    },
    fail: reject,
  }
  return { call, results: promise }
}

/** Content without a fingerprint cannot be suspended: it is given up in this call alone. */
const asGivenUp = ({ fingerprint }: Pace, failure: RenderFailure): RenderFailure =>
  fingerprint === undefined ? failure : { ...failure, reason: 'template_suspended' }

function failureOf(step: Step, message: string): RenderFailure {
  const field = step.do === 'compile' ? step.field : Object.keys(step.sources).join(', ')
  return { ok: false, reason: 'render_failed', field, message }
}
