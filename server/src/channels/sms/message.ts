// What all SMS channels accept and report.

import type { OptOut } from './opt-out.ts'

export type SmsItem = {
  /** E.164, with its plus. */
  to: string
  text: string
  /** A number, a short code or a name. Defaults to the sender in the settings. */
  from?: string | undefined
  mediaUrls?: readonly string[] | undefined
  /** The id of our message, for providers whose protocol has a field for it. */
  messageId?: string | undefined
  /** The URL for reports about this SMS, if the provider reports by HTTP. */
  statusCallback?: string | undefined
}

/** A provider's later report about an SMS that it accepted. `id` is the one in the outcome `sent`. */
export type SmsReceipt = {
  id: string
  /** `passed-on`: on its way. `unknown`: the provider itself does not know. */
  state: 'passed-on' | 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string
}

/** An SMS that somebody sent to us. */
export type InboundSms = { from: string; to: string; text: string; id?: string; optOut?: OptOut }

export const EMPTY = { kind: 'failed', reason: 'nothing to send' } as const
