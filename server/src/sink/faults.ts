// What shall go wrong, by channel: the next so many requests, or all until it is lifted; or those for certain addresses.

import type { Clock } from '../lib/clock.ts'
import type { ChannelService, RefusalName, SinkChannelName, SinkFailure } from './service.ts'

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
export const hasGoaway = (channel: SinkChannelName) => ['web_push', 'apns', 'fcm'].includes(channel)

export const isRefusal = (fault: FaultName | undefined): fault is RefusalName =>
  fault === 'unavailable' || fault === 'rate_limited' || fault === 'gone'

export type Fault = {
  name: FaultName
  /** In seconds, where the protocol has a place for it. */
  retryAfter?: number | undefined
}

/** One that happened: to what was for this address. */
export type FaultOccurrence = { at: number; channel: SinkChannelName; to: string; fault: FaultName }

export type FaultRequest = {
  channel: SinkChannelName
  /** Null lifts it. */
  fault: Fault | null
  /** How often; for each address where they are named. Null is for ever. */
  count: number | null
  to?: readonly string[] | undefined
}

export type Faults = {
  set(wish: FaultRequest): void
  next(channel: SinkChannelName, to: string): Fault | undefined
  /** The newest of those that happened. */
  since(ms: number): FaultOccurrence[]
}

type ActiveFault = { fault: Fault; left: number }

const MOST_MISHAPS = 100_000

export function createFaults(clock: Pick<Clock, 'now'>): Faults {
  const ofAll = new Map<SinkChannelName, ActiveFault>()
  const ofOne = new Map<string, ActiveFault>()
  let mishaps: FaultOccurrence[] = []
  const nameOf = (channel: SinkChannelName, to: string) => `${channel} ${to}`

  function take<Key>(entries: Map<Key, ActiveFault>, key: Key): Fault | undefined {
    const entry = entries.get(key)
    if (entry && --entry.left <= 0) entries.delete(key)
    return entry?.fault
  }

  function put<Key>(entries: Map<Key, ActiveFault>, key: Key, { fault, count }: FaultRequest) {
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
export function failureOf(fault: Fault | undefined, { refusals }: ChannelService): SinkFailure | undefined {
  if (!fault) return undefined
  const { name, retryAfter } = fault
  if (!isRefusal(name)) return name === 'reset_after_accept' ? 'reset' : name
  const refusal = refusals[name]()
  if (retryAfter === undefined || refusal.headers?.['retry-after'] === undefined) return refusal
  return { ...refusal, headers: { ...refusal.headers, 'retry-after': String(retryAfter) } }
}
