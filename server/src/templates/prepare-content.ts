// Checks incoming content completely and compiles its MJML. Content that passes can be rendered.

import type { AppId } from '../lib/ids.ts'
import { checkContent } from './check-content.ts'
import type { ContentFields } from './content.ts'
import { allSources, type EmailHtml } from './content-sources.ts'
import { textsByPath } from './language.ts'
import { isMjml } from './render/mjml.ts'
import type { Renderer } from './render/renderer.ts'
import { ABSENT_OBJECTS, hasLiquid } from './render/source.ts'

/**
 * Returns the compiled MJML of the body, or null when the body is HTML or absent. In that case, and without Liquid, the
 * result is synchronous.
 */
export function prepareContent(
  renderer: Renderer,
  appId: AppId,
  content: ContentFields,
  dynamicContent: string | null,
): Promise<EmailHtml> | null {
  checkContent(content)
  const isPlain = !emailBodiesOf(content).some(([, body]) => isMjml(body)) && !mayHoldLiquid(content)
  return isPlain ? null : checkAndCompile(renderer, appId, content, dynamicContent)
}

const emailBodiesOf = ({ email_body: body }: ContentFields) => textsByPath('email_body', body)

/** Whether any text that is rendered contains Liquid. */
export const usesLiquid = (content: ContentFields) => mayHoldLiquid(content) && liquidSourcesIn(content).length > 0

const liquidSourcesIn = (content: ContentFields) =>
  Object.entries(allSources(content, null)).filter(([, { text }]) => hasLiquid(text))

/** A cheap test: most content has no Liquid, and then its sources need not be collected. */
function mayHoldLiquid(value: unknown): boolean {
  if (typeof value === 'string') return hasLiquid(value)
  if (typeof value === 'object') for (const name in value) if (mayHoldLiquid(value[name as never])) return true
  return false
}

async function checkAndCompile(
  renderer: Renderer,
  appId: AppId,
  content: ContentFields,
  dynamicContent: string | null,
): Promise<EmailHtml> {
  const absent = dynamicContent === null ? ABSENT_OBJECTS : ABSENT_OBJECTS.filter((name) => name !== 'dynamic_content')
  // Checked before compiling, so that errors refer to the lines that the author wrote.
  const written = liquidSourcesIn(content)
  if (written.length > 0) await renderer.check(appId, Object.fromEntries(written), absent)
  const compiled: Record<string, string> = {}
  for (const [place, body] of emailBodiesOf(content)) {
    if (!isMjml(body)) continue
    const html = await renderer.compileMjml(appId, place, body)
    await renderer.check(appId, { [place]: { kind: 'html', text: html } }, absent)
    compiled[place] = html
  }
  if (Object.keys(compiled).length === 0) return null
  if (typeof content.email_body === 'string') return compiled.email_body ?? null
  return Object.fromEntries(Object.entries(compiled).map(([place, html]) => [place.slice('email_body.'.length), html]))
}
