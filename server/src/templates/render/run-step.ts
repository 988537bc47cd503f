import { ownProperty } from '../../lib/own-property.ts'
import { htmlToText } from './html-to-text.ts'
import { createEngine, TextError } from './liquid-engine.ts'
import { compileMjml } from './mjml.ts'
import type { Sources } from './source.ts'
import type { Step, StepResult } from './worker-protocol.ts'

/** The text part that is made beside the HTML of this name. */
const TEXT_OF: Record<string, string> = { email_body: 'email_text' }

const engine = createEngine()

export async function doStep(step: Step, nowMs: number): Promise<StepResult> {
  if (step.do === 'compile') {
    const { field, text } = step
    return attempt(field, async () => ({ [field]: await compileMjml(text) }))
  }
  if (step.do === 'check') return each(step.sources, (source) => engine.check(source, step.absent) ?? {})
  return each(step.sources, (source, field) => {
    const text = engine.render(source, step.scope, nowMs)
    const alternative = ownProperty(TEXT_OF, field)
    return alternative === undefined ? { [field]: text } : { [field]: text, [alternative]: htmlToText(text) }
  })
}

type Texts = Record<string, string>

async function each(sources: Sources, run: (source: Sources[string], field: string) => Texts): Promise<StepResult> {
  const texts: Texts = {}
  for (const [field, source] of Object.entries(sources)) {
    const result = await attempt(field, () => run(source, field))
    if (!result.ok) return result
    Object.assign(texts, result.texts)
  }
  return { ok: true, texts }
}

async function attempt(field: string, run: () => Texts | Promise<Texts>): Promise<StepResult> {
  try {
    return { ok: true, texts: await run() }
  } catch (error) {
    if (!(error instanceof TextError)) throw error
    const { message, line, column } = error
    const place = line === undefined || column === undefined ? {} : { line, column }
    return { ok: false, reason: 'render_failed', field, message, ...place }
  }
}
