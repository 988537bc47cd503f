// What shall happen to people of a channel when they are first written to, and what must have become of it in the end.

import type { FaultName } from '../../src/sink/faults.ts'
import type { ChannelName } from './channels.ts'
import { isFull } from './ledger.ts'

export const SIZE = isFull ? 2_000 : 200
/** How often a provider that fails does so before it works again. */
export const TIMES = isFull ? 3 : 1
/** More than the first pause that we would make ourselves, so that it is seen to be heeded. */
export const RETRY_AFTER = 12

export type Fate = {
  fault: FaultName | 'none'
  /** Of `SIZE`; or so many, where each takes its time. */
  count: number
  /** In the end. Each is taken once, whatever it is. */
  states: readonly string[]
}

const share = (percent: number) => Math.round((SIZE * percent) / 100)
const FEW = isFull ? 10 : 3

/**
 * Where mail is that is put off because there is too much of it: that slows down all mail to the same inbox provider for minutes, so
 * that each is at another.
 */
export const SLOWED_MAILBOXES = [
  'gmail.com',
  'yahoo.com',
  'outlook.com',
  'gmx.de',
  'proton.me',
  'mail.ru',
  'qq.com',
  'comcast.net',
]

/** Answered at once: these go in the direct lane, a hundred in a message. */
export const quickFates = (name: ChannelName): Fate[] => [
  { fault: 'unavailable', count: share(30), states: ['sent'] },
  { fault: 'rate_limited', count: name === 'email' ? SLOWED_MAILBOXES.length : share(5), states: ['sent'] },
  { fault: 'reset_after_accept', count: share(5), states: ['unknown'] },
  { fault: 'none', count: share(5), states: ['sent'] },
]

/** All that holds up a slice is in the bulk lane. A mail server may take five minutes over a mail: only at full scale is it waited for. */
export function slowFates(name: ChannelName): Fate[] {
  const endless = name !== 'email' ? FEW : isFull ? 3 : 0
  return [
    { fault: 'slow', count: share(5), states: ['sent'] },
    { fault: 'hang', count: endless, states: ['unknown'] },
    { fault: 'trickle', count: endless, states: ['unknown'] },
    { fault: 'garbage', count: FEW, states: ['sent', 'unknown'] },
    { fault: 'none', count: share(50) - 2 * endless - FEW, states: ['sent'] },
  ]
}

/** Seconds, as operations.md has it: the pause before another try, of which up to half is taken away at random. */
export function pauseOf(name: ChannelName, attempt: number): { least: number; middle: number; most: number } {
  const [first, longest] = name === 'email' ? [300, 4 * 3_600] : [10, 3_600]
  const most = Math.min(longest, first * 2 ** (attempt - 1))
  // Google wants ten seconds where it names no time.
  const floor = name === 'fcm' ? 10 : 0
  return { least: Math.max(floor, most / 2), middle: Math.max(floor, most * 0.75), most: Math.max(floor, most) }
}
