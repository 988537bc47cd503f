// What email feedback needs from the channels.

import type { EmailFeedback } from '../../messages/email/record-feedback.ts'

export type EmailBounceClass = Extract<EmailFeedback, { kind: 'bounced' }>['class']

/** The single classifier of refusals. */
export type ClassifyBounce = (given: { code?: number; enhanced?: string; text?: string }) => EmailBounceClass

/** Fetches a page from an external server through the guarded client. Returns undefined without a good answer. */
export type FetchPage = (url: string) => Promise<Buffer | undefined>
