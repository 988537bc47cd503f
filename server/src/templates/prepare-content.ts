// Content on its way in: checked in every respect, its MJML compiled. What passes here can be rendered.

import type { AppId } from '../lib/ids.ts'
import { checkContent } from './check-content.ts'
import type { ContentFields } from './content.ts'
import { allSources, type EmailHtml } from './content-sources.ts'
import { textsByPath } from './language.ts'
import { isMjml } from './render/mjml.ts'
import type { Renderer } from './render/renderer.ts'
import { ABSENT_OBJECTS, hasLiquid } from './render/source.ts'

/** Answers what the MJML of the body became; null where the body is HTML, or nothing: at once, if there is no Liquid either. */
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

/** Whether a text that is rendered holds any. */
export const usesLiquid = (content: ContentFields) => mayHoldLiquid(content) && liquidSourcesIn(content).length > 0

const liquidSourcesIn = (content: ContentFields) =>
  Object.entries(allSources(content, null)).filter(([, { text }]) => hasLiquid(text))

/** Most content holds none, and then its sources need not be gathered. */
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
  // Before compiling, so that what is wrong is told in the author's lines.
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
