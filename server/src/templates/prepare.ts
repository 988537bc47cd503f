// Content on its way in: checked in every respect, its MJML compiled. What passes here can be rendered.

import type { AppId } from '../lib/ids.ts'
import { checkContent } from './check-content.ts'
import type { Content } from './content.ts'
import { allSources } from './content-sources.ts'
import { isMjml } from './render/mjml.ts'
import type { Renderer } from './render/renderer.ts'
import { hasLiquid } from './render/source.ts'

/** Answers what the MJML of the body became; null where the body is HTML, or nothing: at once, if there is no Liquid either. */
export function prepareContent(renderer: Renderer, appId: AppId, content: Content): Promise<string | null> | null {
  checkContent(content)
  const isPlain = !isMjml(content.email_body ?? '') && !mayHoldLiquid(content)
  return isPlain ? null : prepareWritten(renderer, appId, content)
}

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

async function prepareWritten(renderer: Renderer, appId: AppId, content: Content): Promise<string | null> {
  // Before compiling, so that what is wrong is told in the author's lines.
  const written = writtenIn(content)
  if (written.length > 0) await renderer.check(appId, Object.fromEntries(written))
  const body = content.email_body ?? ''
  if (!isMjml(body)) return null
  const html = await renderer.compileMjml(appId, 'email_body', body)
  await renderer.check(appId, { email_body: { kind: 'html', text: html } })
  return html
}
