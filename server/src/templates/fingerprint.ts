import { createHash } from 'node:crypto'
import type { ContentFields } from './content.ts'
import { allSources, type EmailHtml } from './content-sources.ts'

/** The key of suspensions. Equal content has an equal fingerprint, whether a template or a message contains it. */
export function fingerprintOf(content: ContentFields, emailHtml: EmailHtml, dynamicContent: string | null): string {
  // Sorted, because the database does not preserve the order of fields.
  const texts = Object.entries(allSources(content, emailHtml))
    .map(([field, { text }]) => [field, text])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([texts, dynamicContent]))
    .digest('base64url')
}
