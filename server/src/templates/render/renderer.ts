// Rendering, for everybody who needs it: in processes of their own, never in the one that serves requests.

import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { own } from '../../lib/own.ts'
import { createRenderPool, type RenderPool, type RenderPoolOptions } from './pool.ts'
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

/** Steps handed to a process at once; the next turn may be another app's. */
const SLICE = 100
/** A template that had its process ended so often in one call is not tried again in it. */
const MAX_STRIKES = 3

export function createRenderer(options: RenderPoolOptions = {}): Renderer {
  const pool = createRenderPool(options)

  async function runSlice(appId: AppId, steps: Step[], nowMs: number): Promise<StepResult[]> {
    const results: StepResult[] = []
    const strikes = new Map<unknown, number>()
    let isOneByOne = false
    while (results.length < steps.length) {
      const step = steps[results.length] as Step
      const key = step.do === 'compile' ? step : step.sources
      if ((strikes.get(key) ?? 0) >= MAX_STRIKES) {
        results.push(failed(step, 'takes too long'))
        continue
      }
      const rest = steps.slice(results.length, isOneByOne ? results.length + 1 : undefined)
      const outcome = await pool.run(appId, { steps: rest, nowMs })
      results.push(...outcome.results)
      if (outcome.because === undefined) continue
      if (isOneByOne) {
        // Alone, and for the second time: a machine that paused, or a process filled by the others of the slice, would be through.
        results.push(failed(step, outcome.because))
        strikes.set(key, (strikes.get(key) ?? 0) + 1)
      }
      isOneByOne = !isOneByOne
    }
    return results
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
    compileMjml: async (appId, field, text) =>
      own(await runOne(appId, { do: 'compile', field, text }), field) as string,
    stats: pool.stats,
    close: pool.close,
  }
}

function failed(step: Step, because = 'could not be rendered'): RenderFailure {
  const field = step.do === 'compile' ? step.field : Object.keys(step.sources).join(', ')
  return { ok: false, reason: 'render_failed', field, message: because }
}

export const renderFailed = (failure: RenderFailure) =>
  new AppError('invalid', { code: 'render_failed', title: describe(failure), meta: { field: failure.field } })
