// What feedback on emails needs of the channels.

import type { EmailFeedback } from '../../messages/email/record-feedback.ts'

export type EmailBounceClass = Extract<EmailFeedback, { kind: 'bounced' }>['class']

/** The one classifier of refusals. */
export type ClassifyBounce = (given: { code?: number; enhanced?: string; text?: string }) => EmailBounceClass

/** A page of somebody else's server, through the guarded client; undefined when there was no good answer. */
export type FetchPage = (url: string) => Promise<Buffer | undefined>
