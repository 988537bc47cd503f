// What shall go wrong, by channel: the next so many requests, or all until it is lifted.

import type { ChannelName, ChannelService, Failure, RefusalName } from './service.ts'

export const faultNames = ['unavailable', 'rate_limited', 'gone', 'reset_after_accept', 'slow', 'goaway'] as const
export type FaultName = (typeof faultNames)[number]

/** There is nothing to say goodbye with outside of HTTP/2. */
export const hasGoaway = (channel: ChannelName) => ['web_push', 'apns', 'fcm'].includes(channel)

export const isRefusal = (fault: FaultName | undefined): fault is RefusalName =>
  fault === 'unavailable' || fault === 'rate_limited' || fault === 'gone'

export type Faults = {
  /** Null lifts it; a count of null is for ever. */
  set(channel: ChannelName, fault: FaultName | null, count: number | null): void
  next(channel: ChannelName): FaultName | undefined
}

export function createFaults(): Faults {
  const set = new Map<ChannelName, { fault: FaultName; left: number }>()
  return {
    set(channel, fault, count) {
      if (fault === null) set.delete(channel)
      else set.set(channel, { fault, left: count ?? Number.POSITIVE_INFINITY })
    },
    next(channel) {
      const current = set.get(channel)
      if (!current) return undefined
      if (--current.left <= 0) set.delete(channel)
      return current.fault
    },
  }
}

/** In the provider's own words. */
export function failureOf(fault: FaultName | undefined, { refusals }: ChannelService): Failure | undefined {
  if (isRefusal(fault)) return refusals[fault]()
  return fault === 'reset_after_accept' ? 'reset' : fault
}
