// What an outcome is: something that was done, perhaps because of a message.

import type { Id } from '../lib/ids.ts'

/** Put down to a click, to a message that was seen before, or to none. */
export const attributions = ['direct', 'influenced', 'unattributed'] as const
export type Attribution = (typeof attributions)[number]

export type Measure = {
  name: string
  attribution: Attribution
  /** The type of the subscription; empty where nobody said. */
  platform: string
  /** The messages that it is put down to. */
  messageIds: readonly Id<'message'>[]
  weight: number
  at: Date
}

/** Counted by ourselves, or told by SDKs under this name. Nobody else's outcome begins like these. */
export const CLICK = 'os__click'
export const CONFIRMED_DELIVERY = 'os__confirmed_delivery'
export const SESSION_DURATION = 'os__session_duration'
export const isReservedName = (name: string) => name.startsWith('os__')

const HOUR_MS = 3_600_000
export const hourOf = (time: Date) => new Date(Math.floor(time.getTime() / HOUR_MS) * HOUR_MS)
