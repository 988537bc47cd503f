// An outcome: something that a user did, perhaps because of a message.

import type { Id } from '../lib/ids.ts'

/** Attributed to a click, to a message that was seen before, or to no message. */
export const attributions = ['direct', 'influenced', 'unattributed'] as const
export type Attribution = (typeof attributions)[number]

export type Measure = {
  name: string
  attribution: Attribution
  /** The type of the subscription; empty when unknown. */
  platform: string
  /** The messages that the outcome is attributed to. */
  messageIds: readonly Id<'message'>[]
  weight: number
  at: Date
}

/**
 * Outcomes that the server counts itself, or that SDKs report under this name. Custom outcomes cannot use the prefix.
 */
export const CLICK = 'os__click'
export const CONFIRMED_DELIVERY = 'os__confirmed_delivery'
export const SESSION_DURATION = 'os__session_duration'
export const isReservedName = (name: string) => name.startsWith('os__')

const HOUR_MS = 3_600_000
export const hourOf = (time: Date) => new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS)
