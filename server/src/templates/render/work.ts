// What can be asked of a rendering thread. A slice is a list of steps for one app, done one after the other.

import type { Scope, Sources, TextProblem } from './source.ts'

export type Step =
  /** Render the texts for one person. */
  | { do: 'render'; sources: Sources; scope: Scope }
  /** Is the Liquid of these texts good? */
  | { do: 'check'; sources: Sources }
  /** Turn the MJML of this field into HTML. */
  | { do: 'compile'; field: string; text: string }

export type StepResult =
  | { ok: true; texts: Record<string, string> }
  | ({ ok: false; reason: 'render_failed' } & TextProblem)

/** How long a step may take. Compiling happens once, when a template is saved, and is slow by nature. */
export const DEADLINE_MS: Record<Step['do'], number> = { render: 250, check: 250, compile: 2_000 }

export type Slice = { steps: Step[]; nowMs: number }
export type ToMain = { ready: true } | { results: StepResult[]; isLast: boolean }

/**
 * The one cell of memory that both threads see: the step that is under way. Read by the watching thread when this one is too busy to
 * answer.
 */
export const NOTHING = -1
export type Progress = Int32Array<SharedArrayBuffer>
