// What all ways of sending texts take and tell.

import type { OptOut } from './opt-out.ts'

export type SmsItem = {
  /** E.164, with its plus. */
  to: string
  text: string
  /** A number, a short code or a name; otherwise the one of the settings. */
  from?: string | undefined
  mediaUrls?: readonly string[] | undefined
  /** Of the message that it belongs to where the provider's protocol has a place for it. */
  messageId?: string | undefined
  /** Where the provider reports what became of this one, if it reports by HTTP. */
  statusCallback?: string | undefined
}

/** What a provider tells later of a text that it took. `id` is the one of the outcome `sent`. */
export type SmsReceipt = {
  id: string
  /** `passed-on`: on its way. `unknown`: the provider itself does not know. */
  state: 'passed-on' | 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string
}

/** What somebody wrote to us. */
export type InboundSms = { from: string; to: string; text: string; id?: string; optOut?: OptOut }

export const EMPTY = { kind: 'failed', reason: 'nothing to send' } as const
