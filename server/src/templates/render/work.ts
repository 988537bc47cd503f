// What can be asked of a rendering process. A slice is a list of steps for one app, done one after the other.

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

/** Results come at least so often: what is lost when a process is ended has to be done again. */
export const SEND_EVERY_MS = 50

export type Slice = { steps: Step[]; nowMs: number }
export type FromWorker = { ready: true } | { results: StepResult[]; isLast: boolean }
