// Reserves messages against the application limit, and releases those that a provider refused.

import { appNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { bucketOf, expiredUntil } from './application-limit.ts'
import { findManualHold, type SendingHold } from './hold.ts'
import { notifyAdministrators } from './notify-administrators.ts'
import { findDisabledHold } from './read.ts'
import { bookUsage, ensureSending, type LockedSending, lockSending, unbookUsage } from './store.ts'

export type Reservation = {
  /** From 0 to the requested count. */
  granted: number
  /** The bucket that counts them; `releaseMessages` needs it. */
  second: Date
  /** Why fewer were granted than requested. */
  hold?: SendingHold
}

/**
 * Runs inside the transaction that marks deliveries as sending, after it has locked the message; the app's row stays
 * locked until the transaction ends. The batch that would cross the limit gets what is left, and the app is disabled:
 * once, however many callers there are at the same time.
 */
export async function reserveMessages(db: Db, appId: AppId, count: number, now: Date): Promise<Reservation> {
  const row = await lockSendingRow(db, appId)
  const countedAt = row.countedAt && row.countedAt > now ? row.countedAt : now
  const second = bucketOf(countedAt)
  const held = findManualHold(row)
  if (held) return { granted: 0, second, hold: held }

  const booked = await bookUsage(db, appId, {
    count,
    now,
    countedAt,
    second,
    agedUntil: expiredUntil(countedAt),
    used: row.used,
    isDisabled: row.disabledAt !== null,
  })
  if (booked.disabledAt === null) return { granted: booked.granted, second }
  if (booked.isOpen)
    await notifyAdministrators(db, appId, 'sending.disabled', { used: booked.used, limit: booked.allowed }, now)
  const hold = await findDisabledHold(db, appId, booked.disabledAt, countedAt)
  return { granted: booked.granted, second, ...(hold && { hold }) }
}

export type ReleasedMessages = { second: Date; count: number }

/** Messages that were explicitly refused were not delivered. Those whose outcome is unknown stay counted. */
export async function releaseMessages(
  db: Db,
  appId: AppId,
  given: readonly ReleasedMessages[],
  now: Date,
): Promise<void> {
  const sums = new Map<number, number>()
  for (const { second, count } of given)
    if (second > expiredUntil(now)) sums.set(second.getTime(), (sums.get(second.getTime()) ?? 0) + count)
  if (sums.size === 0) return
  await lockSendingRow(db, appId)
  await unbookUsage(
    db,
    appId,
    [...sums].map(([ms, count]) => ({ second: new Date(ms), count })),
  )
}

export async function lockSendingRow(db: Db, appId: AppId): Promise<LockedSending> {
  const found = await lockSending(db, appId)
  if (found) return found
  await ensureSending(db, appId)
  const made = await lockSending(db, appId)
  if (!made) throw appNotFound()
  return made
}
