import { createHash } from 'node:crypto'
import type { ContentFields } from './content.ts'
import { allSources, type EmailHtml } from './content-sources.ts'

/** What suspensions are kept by: content that says the same has the same, whether a template or a message holds it. */
export function fingerprintOf(content: ContentFields, emailHtml: EmailHtml, dynamicContent: string | null): string {
  // The database keeps fields in an order of its own.
  const texts = Object.entries(allSources(content, emailHtml))
    .map(([field, { text }]) => [field, text])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([texts, dynamicContent]))
    .digest('base64url')
}
