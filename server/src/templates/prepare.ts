// Content on its way in: checked in every respect, its MJML compiled. What passes here can be rendered.

import type { AppId } from '../lib/ids.ts'
import { checkContent } from './check-content.ts'
import type { Content } from './content.ts'
import { allSources } from './content-sources.ts'
import { isMjml } from './render/mjml.ts'
import type { Renderer } from './render/renderer.ts'
import { hasLiquid } from './render/source.ts'

/** Answers what the MJML of the body became; null where the body is HTML, or nothing. */
export async function prepareContent(renderer: Renderer, appId: AppId, content: Content): Promise<string | null> {
  checkContent(content)
  // Before compiling, so that what is wrong is told in the author's lines.
  const written = Object.entries(allSources(content, null)).filter(([, { text }]) => hasLiquid(text))
  if (written.length > 0) await renderer.check(appId, Object.fromEntries(written))
  const body = content.email_body ?? ''
  if (!isMjml(body)) return null
  const html = await renderer.compileMjml(appId, 'email_body', body)
  await renderer.check(appId, { email_body: { kind: 'html', text: html } })
  return html
}
