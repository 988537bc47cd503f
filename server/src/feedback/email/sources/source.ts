// The contract of an email event source: its stored configuration, and the events that it reports.

import { createHash, timingSafeEqual } from 'node:crypto'
import { forbidden } from '../../../lib/errors.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { SecretBox } from '../../../lib/secrets.ts'
import type { EmailFeedback } from '../../../messages/email/record-feedback.ts'
import type { EmailBounceClass } from '../ports.ts'
import { isMachineAgent } from '../tracking-guard.ts'
import { textOf } from './json.ts'

export const emailEventSources = ['ses', 'mailgun', 'sendgrid', 'postmark'] as const
export type EmailEventSource = (typeof emailEventSources)[number]

/** As stored, with the field names of the HTTP interface and without secrets. */
export type SourceSettings = {
  ses: { topic_arn: string }
  mailgun: Record<string, never>
  sendgrid: { public_key: string }
  postmark: { username: string | null }
}
export type SourceSecrets = {
  ses: undefined
  mailgun: { signing_key: string }
  sendgrid: undefined
  postmark: { password: string | null; path_secret: string | null }
}
/** Holds secrets in clear text, so it must not appear in any answer or log. */
export type SourceConfig<Name extends EmailEventSource> = {
  settings: SourceSettings[Name]
  secrets: SourceSecrets[Name]
}

export type SourceRequest = { body: Buffer; header(name: string): string | undefined; pathSecret?: string | undefined }

type RecipientEventOf<News> = News extends { kind: 'bounced' }
  ? { kind: 'bounced'; class: EmailBounceClass; detail?: string | undefined }
  : Omit<News, 'reference' | 'at'>

export type SourceEvent = {
  /** The provider's own identifier of the event. */
  id: string
  /** Our signed reference, if the provider returns it; otherwise `messageId` holds the Message-ID that we assigned. */
  reference?: string | undefined
  messageId?: string | undefined
  at: Date | undefined
  /** One entry for each affected recipient, at least one; without an address when the provider names none. */
  recipients: RecipientEvent[]
}
export type RecipientEvent = { recipient?: string | undefined; event: RecipientEventOf<EmailFeedback> }

/** The content of a request after authentication. */
export type SourceReport = {
  events: SourceEvent[]
  /** Identifies the request itself, so that it is processed only once. */
  once?: string | undefined
}

/** One answer for every reason, so that it does not reveal whether the app or the source exists. */
export const notAuthentic = () => forbidden('Invalid signature or credentials')

/** Compares in constant time, whatever the lengths. */
export function isSame(a: string, b: string): boolean {
  const [x, y] = [a, b].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer]
  return timingSafeEqual(x, y)
}

/** Each secret is bound to its row, so it cannot be opened after being copied to another. */
export function sourceSecret(secrets: SecretBox, appId: AppId, source: EmailEventSource) {
  const context = `email_event_sources ${appId} ${source}`
  return {
    seal: (value: object) => secrets.seal(JSON.stringify(value), context),
    open: (sealed: string) => JSON.parse(secrets.open(sealed, context)),
  }
}

/** Judged by the user agent that the provider saw. A missing user agent does not count as a machine. */
export const isMachine = (agent: unknown) => textOf(agent) !== undefined && isMachineAgent(textOf(agent))
