// What shall go wrong, by channel: the next so many requests, or all until it is lifted; or those for certain addresses.

import type { Clock } from '../lib/clock.ts'
import type { ChannelName, ChannelService, Failure, RefusalName } from './service.ts'

export const faultNames = [
  'unavailable',
  'rate_limited',
  'gone',
  'reset_after_accept',
  'slow',
  'hang',
  'trickle',
  'garbage',
  'goaway',
] as const
export type FaultName = (typeof faultNames)[number]

/** There is nothing to say goodbye with outside of HTTP/2. */
export const hasGoaway = (channel: ChannelName) => ['web_push', 'apns', 'fcm'].includes(channel)

export const isRefusal = (fault: FaultName | undefined): fault is RefusalName =>
  fault === 'unavailable' || fault === 'rate_limited' || fault === 'gone'

export type Fault = {
  name: FaultName
  /** In seconds, where the protocol has a place for it. */
  retryAfter?: number | undefined
}

/** One that happened: to what was for this address. */
export type Mishap = { at: number; channel: ChannelName; to: string; fault: FaultName }

export type FaultWish = {
  channel: ChannelName
  /** Null lifts it. */
  fault: Fault | null
  /** How often; for each address where they are named. Null is for ever. */
  count: number | null
  to?: readonly string[] | undefined
}

export type Faults = {
  set(wish: FaultWish): void
  next(channel: ChannelName, to: string): Fault | undefined
  /** The newest of those that happened. */
  since(ms: number): Mishap[]
}

type Entry = { fault: Fault; left: number }

const MOST_MISHAPS = 100_000

export function createFaults(clock: Pick<Clock, 'now'>): Faults {
  const ofAll = new Map<ChannelName, Entry>()
  const ofOne = new Map<string, Entry>()
  let mishaps: Mishap[] = []
  const nameOf = (channel: ChannelName, to: string) => `${channel} ${to}`

  function take<Key>(entries: Map<Key, Entry>, key: Key): Fault | undefined {
    const entry = entries.get(key)
    if (entry && --entry.left <= 0) entries.delete(key)
    return entry?.fault
  }

  function put<Key>(entries: Map<Key, Entry>, key: Key, { fault, count }: FaultWish) {
    if (fault === null) entries.delete(key)
    else entries.set(key, { fault, left: count ?? Number.POSITIVE_INFINITY })
  }

  return {
    set(wish) {
      const { channel, fault, to } = wish
      for (const address of to ?? []) put(ofOne, nameOf(channel, address), wish)
      if (to) return
      put(ofAll, channel, wish)
      if (fault === null) for (const name of ofOne.keys()) if (name.startsWith(`${channel} `)) ofOne.delete(name)
    },
    next(channel, to) {
      const fault = take(ofOne, nameOf(channel, to)) ?? take(ofAll, channel)
      if (fault) mishaps.push({ at: clock.now().getTime(), channel, to, fault: fault.name })
      if (mishaps.length >= 2 * MOST_MISHAPS) mishaps = mishaps.slice(-MOST_MISHAPS)
      return fault
    },
    since: (ms) => mishaps.slice(-MOST_MISHAPS).filter(({ at }) => at >= ms),
  }
}

/** In the provider's own words. */
export function failureOf(fault: Fault | undefined, { refusals }: ChannelService): Failure | undefined {
  if (!fault) return undefined
  const { name, retryAfter } = fault
  if (!isRefusal(name)) return name === 'reset_after_accept' ? 'reset' : name
  const refusal = refusals[name]()
  if (retryAfter === undefined || refusal.headers?.['retry-after'] === undefined) return refusal
  return { ...refusal, headers: { ...refusal.headers, 'retry-after': String(retryAfter) } }
}
