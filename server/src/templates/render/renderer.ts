// Rendering, for everybody who needs it: in threads of their own, never in the one that serves requests.

import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { createRenderPool, type RenderPool } from './pool.ts'
import { describe, type Scope, type Sources } from './source.ts'
import type { Step, StepResult } from './work.ts'

export type RenderItem = { template: Sources; context: Scope }
/** What came out, by field; beside `email_body` stands `email_text`, its text part. */
export type Rendered = { ok: true; texts: Record<string, string> }
export type RenderFailure = Extract<StepResult, { ok: false }>

export type Renderer = {
  /** Items of one message share their `template` object. An item that fails fails alone. */
  render(appId: AppId, items: RenderItem[], now: Date): Promise<(Rendered | RenderFailure)[]>
  /** Throws what is wrong with the first bad text: `email_body: line 3, column 12: …`. */
  check(appId: AppId, sources: Sources): Promise<void>
  compileMjml(appId: AppId, field: string, text: string): Promise<string>
  stats: RenderPool['stats']
  close(): Promise<void>
}

/** Steps handed to a thread at once; the next turn may be another app's. */
const SLICE = 100
/** A template that had its thread ended so often in one call is not tried again in it. */
const MAX_STRIKES = 3

export function createRenderer(options: { threads?: number } = {}): Renderer {
  const pool = createRenderPool(options.threads)

  async function runSlice(appId: AppId, steps: Step[], nowMs: number): Promise<StepResult[]> {
    const results: StepResult[] = []
    const strikes = new Map<unknown, number>()
    while (results.length < steps.length) {
      const rest = steps.slice(results.length)
      const outcome = await pool.run(appId, { steps: rest, nowMs })
      results.push(...outcome.results)
      if (outcome.killedAt === undefined) continue
      // Steps before the one that was under way are done again, as their results went down with the thread.
      const first = results.length - outcome.results.length
      const culprit = first + outcome.killedAt
      const again = steps.slice(results.length, culprit)
      if (again.length > 0) results.push(...(await runSlice(appId, again, nowMs)))
      const step = steps[culprit] as Step
      const key = step.do === 'compile' ? step : step.sources
      const isHopeless = (strikes.get(key) ?? 0) >= MAX_STRIKES
      results.push(isHopeless ? failed(step, outcome.because) : await runAlone(appId, step, nowMs))
      if (results.at(-1)?.ok === false) strikes.set(key, (strikes.get(key) ?? 0) + 1)
      while ((strikes.get(key) ?? 0) >= MAX_STRIKES && isSame(steps[results.length], key))
        results.push(failed(step, outcome.because))
    }
    return results
  }

  /** Was it really this one? A machine that paused, or a thread filled by the others of the slice, looks the same the first time. */
  async function runAlone(appId: AppId, step: Step, nowMs: number): Promise<StepResult> {
    const { results, because } = await pool.run(appId, { steps: [step], nowMs })
    return results[0] ?? failed(step, because)
  }

  async function run(appId: AppId, steps: Step[], nowMs: number): Promise<StepResult[]> {
    const slices: Step[][] = []
    for (let at = 0; at < steps.length; at += SLICE) slices.push(steps.slice(at, at + SLICE))
    return (await Promise.all(slices.map((slice) => runSlice(appId, slice, nowMs)))).flat()
  }

  async function runOne(appId: AppId, step: Step): Promise<Record<string, string>> {
    const [result] = await run(appId, [step], 0)
    if (result?.ok) return result.texts
    throw renderFailed(result as RenderFailure)
  }

  return {
    render: (appId, items, now) =>
      run(
        appId,
        items.map(({ template, context }) => ({ do: 'render', sources: template, scope: context })),
        now.getTime(),
      ),
    async check(appId, sources) {
      if (Object.keys(sources).length > 0) await runOne(appId, { do: 'check', sources })
    },
    compileMjml: async (appId, field, text) => (await runOne(appId, { do: 'compile', field, text }))[field] as string,
    stats: pool.stats,
    close: pool.close,
  }
}

const isSame = (step: Step | undefined, key: unknown) =>
  step !== undefined && step.do !== 'compile' && step.sources === key

function failed(step: Step, because = 'could not be rendered'): RenderFailure {
  const field = step.do === 'compile' ? step.field : Object.keys(step.sources).join(', ')
  return { ok: false, reason: 'render_failed', field, message: because }
}

export const renderFailed = (failure: RenderFailure) =>
  new AppError('invalid', { code: 'render_failed', title: describe(failure), meta: { field: failure.field } })
