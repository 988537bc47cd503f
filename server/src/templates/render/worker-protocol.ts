// The messages between the server and a rendering process. A batch is a list of steps for one app that run
// sequentially.

import type { AbsentObject, LiquidScope, TemplateProblem, TemplateSources } from './source.ts'

export type RenderStep =
  /** Renders the texts for one person. */
  | { do: 'render'; sources: TemplateSources; scope: LiquidScope }
  /** Checks that the Liquid of these texts is valid and refers to no absent object. */
  | { do: 'check'; sources: TemplateSources; absent: readonly AbsentObject[] }
  /** Compiles the MJML of this field to HTML. */
  | { do: 'compile'; field: string; text: string }

/** `template_suspended`: the template hit its limit so many times in a row that it is not tried for anybody else. */
export type StepResult =
  | { ok: true; texts: Record<string, string> }
  | ({ ok: false; reason: 'render_failed' | 'template_suspended' } & TemplateProblem)

/** The message of a step that hit its time limit, either the engine's own or that of the process. */
export const TIMEOUT_MESSAGE = 'takes too long'

/** The time limit of a step. Compiling happens once, when a template is saved, and is slow by nature. */
export const STEP_DEADLINE_MS: Record<RenderStep['do'], number> = { render: 250, check: 250, compile: 2_000 }

/** The longest interval between results. Results that are lost when a process is killed have to be computed again. */
export const SEND_INTERVAL_MS = 50

/** The maximum number of steps in a batch. */
export const MAX_BATCH_STEPS = 100

export type StepBatch = { steps: RenderStep[]; nowMs: number }
/** `tookMs` has one entry for each result. */
export type WorkerMessage = { ready: true } | { results: StepResult[]; tookMs: number[]; isLast: boolean }
