// Content on its way in: checked in every respect, its MJML compiled. What passes here can be rendered.

import type { AppId } from '../lib/ids.ts'
import { checkContent } from './check-content.ts'
import type { Content } from './content.ts'
import { allSources, type EmailHtml } from './content-sources.ts'
import { textsOf } from './language.ts'
import { isMjml } from './render/mjml.ts'
import type { Renderer } from './render/renderer.ts'
import { ABSENT, hasLiquid } from './render/source.ts'

/** Answers what the MJML of the body became; null where the body is HTML, or nothing: at once, if there is no Liquid either. */
export function prepareContent(
  renderer: Renderer,
  appId: AppId,
  content: Content,
  dynamicContent: string | null,
): Promise<EmailHtml> | null {
  checkContent(content)
  const isPlain = !bodiesOf(content).some(([, body]) => isMjml(body)) && !mayHoldLiquid(content)
  return isPlain ? null : prepareWritten(renderer, appId, content, dynamicContent)
}

const bodiesOf = ({ email_body: body }: Content) => textsOf('email_body', body)

/** Whether a text that is rendered holds any. */
export const hasLiquidIn = (content: Content) => mayHoldLiquid(content) && writtenIn(content).length > 0

const writtenIn = (content: Content) =>
  Object.entries(allSources(content, null)).filter(([, { text }]) => hasLiquid(text))

/** Most content holds none, and then its sources need not be gathered. */
function mayHoldLiquid(value: unknown): boolean {
  if (typeof value === 'string') return hasLiquid(value)
  if (typeof value === 'object') for (const name in value) if (mayHoldLiquid(value[name as never])) return true
  return false
}

async function prepareWritten(
  renderer: Renderer,
  appId: AppId,
  content: Content,
  dynamicContent: string | null,
): Promise<EmailHtml> {
  const absent = dynamicContent === null ? ABSENT : ABSENT.filter((name) => name !== 'dynamic_content')
  // Before compiling, so that what is wrong is told in the author's lines.
  const written = writtenIn(content)
  if (written.length > 0) await renderer.check(appId, Object.fromEntries(written), absent)
  const compiled: Record<string, string> = {}
  for (const [place, body] of bodiesOf(content)) {
    if (!isMjml(body)) continue
    const html = await renderer.compileMjml(appId, place, body)
    await renderer.check(appId, { [place]: { kind: 'html', text: html } }, absent)
    compiled[place] = html
  }
  if (Object.keys(compiled).length === 0) return null
  if (typeof content.email_body === 'string') return compiled.email_body ?? null
  return Object.fromEntries(Object.entries(compiled).map(([place, html]) => [place.slice('email_body.'.length), html]))
}
