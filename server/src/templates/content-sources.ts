// The texts of a message in which Liquid is rendered, and what each of them is.

import { ADDRESSES, hasAddresses, LANGUAGE_MAPS } from './check-content.ts'
import { type Content, channelOf, inLanguage } from './content.ts'
import type { Kind, Sources } from './render/source.ts'

/** What is said to one person: one text for each field, in their language. `emailHtml`: what MJML was compiled to. */
export function sourcesFor(content: Content, emailHtml: string | null, language: string | null | undefined): Sources {
  const channel = channelOf(content)
  const sources: Sources = {}
  if (channel === 'email') {
    addEmail(sources, content, emailHtml)
    return sources
  }
  const kind = channel === 'sms' ? 'text' : 'line'
  for (const field of LANGUAGE_MAPS) add(sources, field, kind, inLanguage(content[field], language))
  if (channel === 'sms') addMedia(sources, content)
  else addPush(sources, content)
  return sources
}

/** Every text in every language, by its place in the content. */
export function allSources(content: Content, emailHtml: string | null): Sources {
  const channel = channelOf(content)
  const sources: Sources = {}
  const kind = channel === 'push' ? 'line' : 'text'
  for (const field of LANGUAGE_MAPS)
    for (const [code, text] of Object.entries(content[field] ?? {})) add(sources, `${field}.${code}`, kind, text)
  addEmail(sources, content, emailHtml)
  addMedia(sources, content)
  addPush(sources, content)
  return sources
}

function addEmail(sources: Sources, content: Content, emailHtml: string | null): void {
  add(sources, 'email_subject', 'header', content.email_subject)
  add(sources, 'email_preheader', 'header', content.email_preheader)
  add(sources, 'email_reply_to_address', 'address', content.email_reply_to_address)
  add(sources, 'email_body', 'html', emailHtml ?? content.email_body)
}

function addMedia(sources: Sources, content: Content): void {
  for (const [i, url] of (content.sms_media_urls ?? []).entries()) add(sources, `sms_media_urls[${i}]`, 'url', url)
}

function addPush(sources: Sources, content: Content): void {
  if (hasAddresses(content)) for (const field of ADDRESSES) add(sources, field, 'url', content[field])
  for (const [id, url] of Object.entries(content.ios_attachments ?? {}))
    add(sources, `ios_attachments.${id}`, 'url', url)
  for (const [name, text] of Object.entries(content.apns_alert ?? {}))
    if (typeof text === 'string') add(sources, `apns_alert.${name}`, 'line', text)
}

function add(sources: Sources, field: string, kind: Kind, text: string | null | undefined): void {
  if (text !== undefined && text !== null) sources[field] = { kind, text }
}
