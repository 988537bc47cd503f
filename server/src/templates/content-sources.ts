// The texts of a message that are rendered with Liquid, and the kind of each.

import { ADDRESSES, EMAIL_TEXTS, hasAddresses, LANGUAGE_MAPS } from './check-content.ts'
import { type ContentFields, channelOf } from './content.ts'
import { type ByLanguage, textInLanguage, textsByPath } from './language.ts'
import type { SourceKind, TemplateSources } from './render/source.ts'

/**
 * The HTML that the body's MJML compiled to. By language when the body is, and then only for languages written in MJML.
 */
export type EmailHtml = ByLanguage | null

/** The body of an email as HTML. */
export const emailBodyOf = ({ email_body: body }: ContentFields, emailHtml: EmailHtml): ByLanguage | undefined =>
  typeof body === 'object' && body !== null && typeof emailHtml !== 'string'
    ? { ...body, ...emailHtml }
    : (emailHtml ?? body ?? undefined)

/** Whether any text of the email varies by language. */
export const isEmailByLanguage = (content: ContentFields) =>
  EMAIL_TEXTS.some((field) => typeof content[field] === 'object' && content[field] !== null)

/** The texts for one person: one text per field, in their language. */
export function sourcesFor(
  content: ContentFields,
  emailHtml: EmailHtml,
  language: string | null | undefined,
): TemplateSources {
  const channel = channelOf(content)
  const sources: TemplateSources = {}
  if (channel === 'email') {
    for (const [field, kind, texts] of emailTexts(content, emailHtml))
      add(sources, field, kind, textInLanguage(texts, language))
    return sources
  }
  const kind = channel === 'sms' ? 'text' : 'line'
  for (const field of LANGUAGE_MAPS) add(sources, field, kind, textInLanguage(content[field], language))
  if (channel === 'sms') addMedia(sources, content)
  else addPush(sources, content)
  return sources
}

/** Every text in every language, by its place in the content. */
export function allSources(content: ContentFields, emailHtml: EmailHtml): TemplateSources {
  const channel = channelOf(content)
  const sources: TemplateSources = {}
  const kind = channel === 'push' ? 'line' : 'text'
  for (const field of LANGUAGE_MAPS)
    for (const [place, text] of textsByPath(field, content[field])) add(sources, place, kind, text)
  for (const [field, kind, texts] of emailTexts(content, emailHtml))
    for (const [place, text] of textsByPath(field, texts)) add(sources, place, kind, text)
  addMedia(sources, content)
  addPush(sources, content)
  return sources
}

const emailTexts = (
  content: ContentFields,
  emailHtml: EmailHtml,
): [field: string, kind: SourceKind, texts: ByLanguage | null | undefined][] => [
  ['email_subject', 'header', content.email_subject],
  ['email_preheader', 'header', content.email_preheader],
  ['email_reply_to_address', 'address', content.email_reply_to_address],
  ['email_body', 'html', emailBodyOf(content, emailHtml)],
]

function addMedia(sources: TemplateSources, content: ContentFields): void {
  for (const [i, url] of (content.sms_media_urls ?? []).entries()) add(sources, `sms_media_urls[${i}]`, 'url', url)
}

function addPush(sources: TemplateSources, content: ContentFields): void {
  if (hasAddresses(content)) for (const field of ADDRESSES) add(sources, field, 'url', content[field])
  for (const [id, url] of Object.entries(content.ios_attachments ?? {}))
    add(sources, `ios_attachments.${id}`, 'url', url)
  for (const [name, text] of Object.entries(content.apns_alert ?? {}))
    if (typeof text === 'string') add(sources, `apns_alert.${name}`, 'line', text)
}

function add(sources: TemplateSources, field: string, kind: SourceKind, text: string | null | undefined): void {
  if (text !== undefined && text !== null) sources[field] = { kind, text }
}
