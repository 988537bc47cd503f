// Faults to inject, by channel: for a number of requests, or for all until the fault is removed; for all addresses, or
// for certain ones.

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

/** Only HTTP/2 has GOAWAY. */
export const hasGoaway = (channel: SinkChannelName) => ['web_push', 'apns', 'fcm'].includes(channel)

export const isRefusal = (fault: FaultName | undefined): fault is RefusalName =>
  fault === 'unavailable' || fault === 'rate_limited' || fault === 'gone'

export type Fault = {
  name: FaultName
  /** In seconds, for protocols that have a field for it. */
  retryAfter?: number | undefined
}

/** A fault that was injected, and the address of the request that it affected. */
export type FaultOccurrence = { at: number; channel: SinkChannelName; to: string; fault: FaultName }

export type FaultRequest = {
  channel: SinkChannelName
  /** Null removes the fault. */
  fault: Fault | null
  /** How often the fault happens; for each address, if there are addresses. Null means always. */
  count: number | null
  to?: readonly string[] | undefined
}

export type Faults = {
  set(wish: FaultRequest): void
  next(channel: SinkChannelName, to: string): Fault | undefined
  /** The newest faults that were injected. */
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

/** Returns the failure in the form of the provider's own answer. */
export function failureOf(fault: Fault | undefined, { refusals }: ChannelService): SinkFailure | undefined {
  if (!fault) return undefined
  const { name, retryAfter } = fault
  if (!isRefusal(name)) return name === 'reset_after_accept' ? 'reset' : name
  const refusal = refusals[name]()
  if (retryAfter === undefined || refusal.headers?.['retry-after'] === undefined) return refusal
  return { ...refusal, headers: { ...refusal.headers, 'retry-after': String(retryAfter) } }
}
