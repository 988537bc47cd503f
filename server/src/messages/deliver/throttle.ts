// Throttles messages to a number per minute. Deliveries get their send times when they are written. One that missed its
// time, because sending was held or it was quiet hours, gets a new time after all others; otherwise all that waited
// would be sent at once.

import type { AppId } from '../../lib/ids.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Message, MessageId } from '../message.ts'
import { changeTo, type Decision, QUIET_HOURS } from './decide.ts'
import type { DueDelivery } from './store.ts'

export const THROTTLED = 'throttled'

/** How late a busy server may send a delivery without a new send time. */
export const MAX_LATE_MS = 2_000
/** A delivery whose new time is this close is sent now. */
const SOON_MS = 1_000

type ThrottledMessage = Pick<Message, 'channel' | 'options'>

/** Undefined for messages that are not throttled, such as those that each recipient gets at their own hour. */
export const throttlePerMinuteOf = ({ channel, options }: ThrottledMessage, { throttlePerMinute }: DeliverySettings) =>
  channel === 'push' && !options.delayedOption
    ? (options.throttlePerMinute ?? throttlePerMinute) || undefined
    : undefined

export const intervalMs = (perMinute: number) => 60_000 / perMinute

type DueThrottled = { due: DueDelivery; message: ThrottledMessage & { id: MessageId } }

/** Splits due deliveries into those that are sent now and those that wait for a new send time. */
export async function applyThrottle<Delivery extends DueThrottled>(
  db: Db,
  appId: AppId,
  deliveries: readonly Delivery[],
  settings: DeliverySettings,
  now: Date,
): Promise<{ going: readonly Delivery[]; waiting: Decision[] }> {
  const late = deliveries.filter(
    ({ due, message }) => throttlePerMinuteOf(message, settings) && hasMissedItsTime(due, now),
  )
  const waiting = new Map<Delivery, Decision>()
  for (const group of Map.groupBy(late, ({ message }) => message.id).values()) {
    const [{ message }] = group as [Delivery]
    const stepMs = intervalMs(throttlePerMinuteOf(message, settings) as number)
    const firstMs = await reserveTimes(db, appId, message.id, group.length * stepMs, now)
    for (const [n, delivery] of group.entries()) {
      const dueAt = new Date(firstMs + n * stepMs)
      if (dueAt.getTime() > now.getTime() + SOON_MS)
        waiting.set(delivery, {
          due: delivery.due,
          change: { ...changeTo(delivery.due, 'pending', THROTTLED, now), dueAt },
        })
    }
  }
  return { going: deliveries.filter((delivery) => !waiting.has(delivery)), waiting: [...waiting.values()] }
}

/** Retries have passed the throttle already. */
const hasMissedItsTime = ({ attempts, reason, dueAt }: DueDelivery, now: Date) =>
  attempts === 0 && (reason === QUIET_HOURS || now.getTime() - dueAt.getTime() > MAX_LATE_MS)

/** Reserves times after all send times that are taken. Returns the first one in milliseconds. */
async function reserveTimes(db: Db, appId: AppId, id: MessageId, lastsMs: number, now: Date): Promise<number> {
  const [taken] = await db.query<{ throttledTo: Date }>(sql`
    update messages m
    set throttled_to = greatest(m.throttled_to, ${now}) + interval '1 millisecond' * ${lastsMs}::double precision
    where m.app_id = ${appId} and m.id = ${id}
    returning m.throttled_to`)
  return (taken?.throttledTo ?? now).getTime() - lastsMs
}
