// The application message limit: within any rolling 15 minutes at most `limit_factor` messages per subscribed
// subscription.
//
// Usage is counted in buckets of a second. A message sent at t counts up to and including t + 15 minutes. The last
// message of a bucket is sent less than a second after the bucket's start, so a bucket is dropped 15 minutes and one
// second after its start. It may count up to a second too long, and never too short.

import type { SendingHold } from './hold.ts'

export const WINDOW_MS = 15 * 60_000
const BUCKET_MS = 1_000

/** The start of the bucket that a time falls into. */
export const bucketOf = (at: Date) => new Date(Math.floor(at.getTime() / BUCKET_MS) * BUCKET_MS)

/** Buckets that start at or before this time no longer count. */
export const expiredUntil = (now: Date) => new Date(now.getTime() - WINDOW_MS - BUCKET_MS)

/** When a bucket stops counting. */
const bucketExpiresAt = (second: Date) => new Date(second.getTime() + WINDOW_MS + BUCKET_MS)

/** `roomAfter` is the bucket after whose expiry the app has room again, as far as can be predicted. */
export const disabledHold = (since: Date, roomAfter: Date | null): SendingHold => ({
  reason: 'disabled',
  since,
  ...(roomAfter && { until: bucketExpiresAt(roomAfter) }),
})

/** The first bucket that cannot contain anything booked up to now. */
export const nextBucket = (now: Date) => new Date(bucketOf(now).getTime() + BUCKET_MS)

/**
 * A disabled app stays disabled until less than half of its limit is used. If it resumed at the first free message, it
 * would cross the limit again at once, and its administrators would be notified every second.
 */
export const hasRoom = ({ used, allowed }: { used: number; allowed: number }) => used * 2 < allowed
