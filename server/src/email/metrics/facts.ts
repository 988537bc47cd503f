// What is counted of emails.

import type { InboxProvider } from '../inbox-providers/providers.ts'

export const emailFacts = [
  'sent',
  'delivered',
  'opened',
  'clicked',
  'unique_opened',
  'unique_clicked',
  'failed',
  'bounced',
  'complained',
] as const
export type EmailFact = (typeof emailFacts)[number]

/** `domain` is the sender's, in lower case. */
export type EmailCount = { domain: string; provider: InboxProvider; at: Date } & Partial<Record<EmailFact, number>>
