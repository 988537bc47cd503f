// What can be asked of a rendering process. A slice is a list of steps for one app, done one after the other.

import type { AbsentObject, LiquidScope, TemplateProblem, TemplateSources } from './source.ts'

export type RenderStep =
  /** Render the texts for one person. */
  | { do: 'render'; sources: TemplateSources; scope: LiquidScope }
  /** Is the Liquid of these texts good, and does it name nothing that is absent? */
  | { do: 'check'; sources: TemplateSources; absent: readonly AbsentObject[] }
  /** Turn the MJML of this field into HTML. */
  | { do: 'compile'; field: string; text: string }

/** `template_suspended`: the template has hit its limit for so many in a row that it is not tried for anybody else. */
export type StepResult =
  | { ok: true; texts: Record<string, string> }
  | ({ ok: false; reason: 'render_failed' | 'template_suspended' } & TemplateProblem)

/** The message of a step that has hit its time limit, the engine's own or that of the process. */
export const TIMEOUT_MESSAGE = 'takes too long'

/** How long a step may take. Compiling happens once, when a template is saved, and is slow by nature. */
export const STEP_DEADLINE_MS: Record<RenderStep['do'], number> = { render: 250, check: 250, compile: 2_000 }

/** Results come at least so often: what is lost when a process is ended has to be done again. */
export const SEND_INTERVAL_MS = 50

/** Steps handed to a process at once, at most. */
export const MAX_BATCH_STEPS = 100

export type StepBatch = { steps: RenderStep[]; nowMs: number }
/** `tookMs`: for each result. */
export type WorkerMessage = { ready: true } | { results: StepResult[]; tookMs: number[]; isLast: boolean }
