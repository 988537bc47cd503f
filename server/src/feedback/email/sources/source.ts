// A provider of email that tells us what became of mail: what we know of it, and what it says.

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

/** As it is kept, in the words of the interface, without what is secret. */
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
/** In clear: no answer or log may hold it. */
export type SourceConfig<Name extends EmailEventSource> = {
  settings: SourceSettings[Name]
  secrets: SourceSecrets[Name]
}

export type SourceRequest = { body: Buffer; header(name: string): string | undefined; pathSecret?: string | undefined }

type RecipientEventOf<News> = News extends { kind: 'bounced' }
  ? { kind: 'bounced'; class: EmailBounceClass; detail?: string | undefined }
  : Omit<News, 'reference' | 'at'>

export type SourceEvent = {
  /** The provider's own name for it. */
  id: string
  /** Our signed reference, where the provider hands it on; else the Message-ID that we gave. */
  reference?: string | undefined
  messageId?: string | undefined
  at: Date | undefined
  /** Of each recipient that it is about, at least one; nameless where the provider names none. */
  recipients: RecipientEvent[]
}
export type RecipientEvent = { recipient?: string | undefined; event: RecipientEventOf<EmailFeedback> }

/** What a request says once it is known to be the provider's. */
export type SourceReport = {
  events: SourceEvent[]
  /** Identifies the request itself, so that it is processed only once. */
  once?: string | undefined
}

/** One answer for every reason, so that it does not reveal whether the app or the source exists. */
export const notAuthentic = () => forbidden('Invalid signature or credentials')

/** In constant time, whatever their lengths. */
export function isSame(a: string, b: string): boolean {
  const [x, y] = [a, b].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer]
  return timingSafeEqual(x, y)
}

/** Bound to its row: moved to another, a secret does not open. */
export function sourceSecret(secrets: SecretBox, appId: AppId, source: EmailEventSource) {
  const context = `email_event_sources ${appId} ${source}`
  return {
    seal: (value: object) => secrets.seal(JSON.stringify(value), context),
    open: (sealed: string) => JSON.parse(secrets.open(sealed, context)),
  }
}

/** By the program that the provider saw. One that it does not name says nothing. */
export const isMachine = (agent: unknown) => textOf(agent) !== undefined && isMachineAgent(textOf(agent))
