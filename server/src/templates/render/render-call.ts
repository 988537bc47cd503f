// One rendering call: which of its steps are unassigned, how they are divided into batches, and their results. A batch
// is cut when it is the call's turn, so that its size reflects the latest timing.

import type { AppId } from '../../lib/ids.ts'
import type { JobLane } from '../../queue/job.ts'
import {
  countBatchSteps,
  isSlowStep,
  MAX_CONSECUTIVE_TIMEOUTS,
  recordDuration,
  type StepTiming,
} from './step-timing.ts'
import type { StepBatchOutcome } from './worker-process.ts'
import {
  type RenderStep,
  STEP_DEADLINE_MS,
  type StepBatch,
  type StepResult,
  TIMEOUT_MESSAGE,
} from './worker-protocol.ts'

export type RenderFailure = Extract<StepResult, { ok: false }>

/**
 * `isSuspect`: the process was killed during one of these steps, so they run one at a time until the culprit is known.
 */
type StepRange = { from: number; to: number; isSuspect: boolean }
export type CallBatch = StepBatch & StepRange

export type RenderCall = {
  appId: AppId
  lane: JobLane
  /** The number of unassigned steps. */
  waitingSteps(): number
  /** The number of unassigned and running steps. */
  unsettledSteps(): number
  /** Whether the template of the next step is known to be slow. */
  isSlow(): boolean
  /** May be called only while steps are waiting. */
  takeBatch(): CallBatch
  settle(slice: CallBatch, outcome: StepBatchOutcome): void
  fail(error: unknown): void
}

export type CallParts = {
  appId: AppId
  lane: JobLane
  steps: readonly RenderStep[]
  timings: readonly StepTiming[]
  nowMs: number
}

export function createCall({ appId, lane, steps, timings: paces, nowMs }: CallParts) {
  const { promise, resolve, reject } = Promise.withResolvers<StepResult[]>()
  const results: StepResult[] = new Array(steps.length)
  const ranges: StepRange[] = [{ from: 0, to: steps.length, isSuspect: false }]
  const abandoned = new Set<StepTiming>()
  let unsettled = steps.length

  const stepAt = (index: number) => steps[index] as RenderStep
  const timingAt = (index: number) => paces[index] as StepTiming

  function settleStep(index: number, result: StepResult) {
    results[index] = result
    unsettled--
  }

  function settleTimeout(index: number, failure: RenderFailure) {
    const pace = timingAt(index)
    pace.consecutiveTimeouts++
    if (pace.consecutiveTimeouts < MAX_CONSECUTIVE_TIMEOUTS) return settleStep(index, failure)
    abandoned.add(pace)
    // Whoever suspends the template decides when it is tried again. The count starts afresh then.
    pace.consecutiveTimeouts = 0
    settleStep(index, asSuspended(pace, failure))
  }

  /** Settles the steps of templates that were given up, which need no process. */
  function skipAbandoned() {
    if (abandoned.size > 0)
      for (const range of ranges.splice(0)) {
        let from = range.from
        for (let index = range.from; index <= range.to; index++) {
          const isGivenUp = index < range.to && abandoned.has(timingAt(index))
          if (!isGivenUp && index < range.to) continue
          if (index > from) ranges.push({ ...range, from, to: index })
          if (isGivenUp) settleStep(index, asSuspended(timingAt(index), failureOf(stepAt(index), TIMEOUT_MESSAGE)))
          from = index + 1
        }
      }
    if (unsettled === 0) resolve(results)
  }

  function settleKilled({ from, to, isSuspect }: StepRange, because: string) {
    const pace = timingAt(from)
    const isAlone = to - from === 1
    // The step was killed when running alone, for the second time. A machine that paused, or a process that other steps
    // of the batch had filled, would not have affected it again.
    const isCulprit = isAlone && (isSuspect || pace.consecutiveTimeouts > 0)
    if (!isCulprit) return ranges.unshift({ from, to, isSuspect: true })
    recordDuration(pace, STEP_DEADLINE_MS[stepAt(from).do])
    settleTimeout(from, failureOf(stepAt(from), because))
    const [next] = ranges
    if (isSuspect && next?.from === to) next.isSuspect = false
    return undefined
  }

  const call: RenderCall = {
    appId,
    lane,
    waitingSteps: () => ranges.reduce((sum, { from, to }) => sum + to - from, 0),
    unsettledSteps: () => unsettled,
    isSlow: () => ranges[0] !== undefined && isSlowStep(stepAt(ranges[0].from), timingAt(ranges[0].from)),
    takeBatch() {
      const range = ranges[0] as StepRange
      const { from, isSuspect } = range
      const to = from + (isSuspect ? 1 : countBatchSteps(steps, paces, from, range.to))
      if (to === range.to) ranges.shift()
      else range.from = to
      return { from, to, isSuspect, steps: steps.slice(from, to), nowMs }
    },
    settle({ from, to, isSuspect }, outcome) {
      for (const [offset, result] of outcome.results.entries()) {
        const pace = timingAt(from + offset)
        recordDuration(pace, outcome.tookMs[offset] ?? 0)
        if (!result.ok && result.message === TIMEOUT_MESSAGE) settleTimeout(from + offset, result)
        else {
          pace.consecutiveTimeouts = 0
          settleStep(from + offset, result)
        }
      }
      const ended = from + outcome.results.length
      if (outcome.endReason !== undefined && ended < to) settleKilled({ from: ended, to, isSuspect }, outcome.endReason)
      skipAbandoned()
    },
    fail: reject,
  }
  return { call, results: promise }
}

/** Content without a fingerprint cannot be suspended; it is given up in this call only. */
const asSuspended = ({ fingerprint }: StepTiming, failure: RenderFailure): RenderFailure =>
  fingerprint === undefined ? failure : { ...failure, reason: 'template_suspended' }

function failureOf(step: RenderStep, message: string): RenderFailure {
  const field = step.do === 'compile' ? step.field : Object.keys(step.sources).join(', ')
  return { ok: false, reason: 'render_failed', field, message }
}
