import { ownProperty } from '../../lib/own-property.ts'
import { htmlToText } from './html-to-text.ts'
import { createLiquidEngine, TemplateError } from './liquid-engine.ts'
import { compileMjml } from './mjml.ts'
import type { TemplateSources } from './source.ts'
import type { RenderStep, StepResult } from './worker-protocol.ts'

/** The text part that is created alongside this HTML field. */
const TEXT_PART_FIELDS: Record<string, string> = { email_body: 'email_text' }

const engine = createLiquidEngine()

export async function runStep(step: RenderStep, nowMs: number): Promise<StepResult> {
  if (step.do === 'compile') {
    const { field, text } = step
    return attempt(field, async () => ({ [field]: await compileMjml(text) }))
  }
  if (step.do === 'check') return runEach(step.sources, (source) => engine.check(source, step.absent) ?? {})
  return runEach(step.sources, (source, field) => {
    const text = engine.render(source, step.scope, nowMs)
    const alternative = ownProperty(TEXT_PART_FIELDS, field)
    return alternative === undefined ? { [field]: text } : { [field]: text, [alternative]: htmlToText(text) }
  })
}

type StepTexts = Record<string, string>

async function runEach(
  sources: TemplateSources,
  run: (source: TemplateSources[string], field: string) => StepTexts,
): Promise<StepResult> {
  const texts: StepTexts = {}
  for (const [field, source] of Object.entries(sources)) {
    const result = await attempt(field, () => run(source, field))
    if (!result.ok) return result
    Object.assign(texts, result.texts)
  }
  return { ok: true, texts }
}

async function attempt(field: string, run: () => StepTexts | Promise<StepTexts>): Promise<StepResult> {
  try {
    return { ok: true, texts: await run() }
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    const { message, line, column } = error
    const place = line === undefined || column === undefined ? {} : { line, column }
    return { ok: false, reason: 'render_failed', field, message, ...place }
  }
}
