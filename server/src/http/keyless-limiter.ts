// Web and mobile SDKs send no key. They are recognized by two headers, and rate limited by address.

import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../lib/clock.ts'
import { RateLimited } from '../lib/errors.ts'
import { addressGroup } from '../lib/networks.ts'

const SDK_VERSION = /^onesignal\/(web|android|ios)\/\S/i

export function isSdk(headers: IncomingHttpHeaders): boolean {
  const version = headers['sdk-version']
  return (
    typeof version === 'string' &&
    SDK_VERSION.test(version) &&
    (headers.accept ?? '').toLowerCase().includes('application/vnd.onesignal.v1+json')
  )
}

/** `subject` is the app that the request concerns or, where the app is unknown, the operation. */
export type KeylessLimiter = { count(address: string, subject: string): void }

export const KEYLESS_REQUESTS_PER_SECOND = 100
/** One address may act for several apps (an office, a mobile carrier), but must not be able to guess app ids. */
const APPS_AT_ONCE = 10

/** The counts are cleared each second, so memory is bounded by the requests of one second. */
export function createKeylessLimiter(clock: Clock, perSecond = KEYLESS_REQUESTS_PER_SECOND): KeylessLimiter {
  const counts = new Map<string, number>()
  let second = 0
  const count = (name: string, limit: number) => {
    const used = (counts.get(name) ?? 0) + 1
    counts.set(name, used)
    if (used > limit) throw new RateLimited(1)
  }
  return {
    count(address, subject) {
      const current = Math.floor(clock.leaseMs() / 1000)
      if (current !== second) {
        counts.clear()
        second = current
      }
      const group = addressGroup(address)
      count(group, perSecond * APPS_AT_ONCE)
      count(`${group} ${subject}`, perSecond)
    },
  }
}
