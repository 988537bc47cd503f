// The rendering interface. Rendering runs in separate processes, never in the one that serves requests.

import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { JobLane } from '../../queue/job.ts'
import { createRenderPool, type RenderPool, type RenderPoolOptions } from './pool.ts'
import { createCall, type RenderFailure } from './render-call.ts'
import { type AbsentObject, describeProblem, type LiquidScope, type TemplateSources } from './source.ts'
import { createTimings, newTiming, type StepTiming } from './step-timing.ts'
import type { RenderStep, StepResult } from './worker-protocol.ts'

export type { RenderFailure } from './render-call.ts'
/**
 * `fingerprint` identifies content that is rendered in many calls. Its timing is remembered, and it can be suspended.
 */
export type RenderItem = { template: TemplateSources; context: LiquidScope; fingerprint?: string }
/** The results by field. `email_body` is accompanied by `email_text`, its text part. */
export type Rendered = { ok: true; texts: Record<string, string> }

export type Renderer = {
  /** Items of one message share their `template` object. Items fail independently. `lane` defaults to direct. */
  render(appId: AppId, items: readonly RenderItem[], now: Date, lane?: JobLane): Promise<(Rendered | RenderFailure)[]>
  /** Throws an error that describes the first invalid text: `email_body: line 3, column 12: …`. */
  check(appId: AppId, sources: TemplateSources, absent: readonly AbsentObject[]): Promise<void>
  compileMjml(appId: AppId, field: string, text: string): Promise<string>
  stats: RenderPool['stats']
  close(): Promise<void>
}

export function createRenderer(options: RenderPoolOptions = {}): Renderer {
  const pool = createRenderPool(options)
  const paces = createTimings()

  async function run(parts: Parameters<typeof createCall>[0]): Promise<StepResult[]> {
    if (parts.steps.length === 0) return []
    const { call, results } = createCall(parts)
    pool.add(call)
    return results
  }

  async function runOne(appId: AppId, step: RenderStep): Promise<Record<string, string>> {
    const [result] = await run({ appId, lane: 'direct', steps: [step], timings: [newTiming()], nowMs: 0 })
    if (result?.ok) return result.texts
    throw renderFailed(result as RenderFailure)
  }

  /** The timing of content without a fingerprint is not remembered between calls. */
  function timingsOf(appId: AppId, items: readonly RenderItem[]): StepTiming[] {
    const known = new Map<unknown, StepTiming>()
    return items.map(({ template, fingerprint }) => {
      const key = fingerprint ?? template
      const pace = known.get(key) ?? (fingerprint === undefined ? newTiming() : paces.find(appId, fingerprint))
      known.set(key, pace)
      return pace
    })
  }

  return {
    render: (appId, items, now, lane = 'direct') =>
      run({
        appId,
        lane,
        steps: items.map(({ template, context }) => ({ do: 'render', sources: template, scope: context })),
        timings: timingsOf(appId, items),
        nowMs: now.getTime(),
      }),
    async check(appId, sources, absent) {
      if (Object.keys(sources).length > 0) await runOne(appId, { do: 'check', sources, absent })
    },
    compileMjml: async (appId, field, text) =>
      ownProperty(await runOne(appId, { do: 'compile', field, text }), field) as string,
    stats: pool.stats,
    close: pool.close,
  }
}

export const renderFailed = (failure: RenderFailure) =>
  new AppError('invalid', { code: 'render_failed', title: describeProblem(failure), meta: { field: failure.field } })
