// Why an app does not send at this moment.

import { forbidden } from '../lib/errors.ts'

/**
 * `restored`: the database is a copy, and an operator has to decide what happens to it. `server_paused`, `paused`:
 * somebody stopped the sending of all apps, or of this one. `disabled`: the app has sent more than its application
 * limit.
 */
export type HoldReason = 'restored' | 'server_paused' | 'paused' | 'disabled'

export type SendingHold = {
  reason: HoldReason
  since: Date
  /** When it ends by itself, as far as can be predicted: more subscriptions end it sooner, fewer later. */
  until?: Date
}

/** When each of the holds began. */
export type HoldTimes = { restoredAt: Date | null; serverPausedAt: Date | null; pausedAt: Date | null }

/** The hold that somebody must end by hand. The strongest comes first; ending it may leave another. */
export function findManualHold({ restoredAt, serverPausedAt, pausedAt }: HoldTimes): SendingHold | undefined {
  if (restoredAt) return { reason: 'restored', since: restoredAt }
  if (serverPausedAt) return { reason: 'server_paused', since: serverPausedAt }
  if (pausedAt) return { reason: 'paused', since: pausedAt }
  return undefined
}

/**
 * The answer to a request to send while the app is disabled. Under all other holds the request is accepted, and waits.
 */
export const sendingDisabled = () =>
  forbidden(
    'This app is disabled: it has delivered more messages within 15 minutes than its application message limit. Re-enable it, or wait.',
  )
