// At most so many in a minute. A delivery gets its place among the others when it is made. One that was not sent at its time, because
// sending was held or it was night, takes a new place behind them: otherwise all that waited would go out at once.

import type { AppId } from '../../lib/ids.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Message, MessageId } from '../message.ts'
import { changeTo, type Decision, QUIET_HOURS } from './decide.ts'
import type { DueDelivery } from './store.ts'

export const THROTTLED = 'throttled'

/** What a busy server may be late by. */
export const MAX_LATE_MS = 2_000
/** What would have its place so soon may go now. */
const SOON_MS = 1_000

type ThrottledMessage = Pick<Message, 'channel' | 'options'>

/** How many in a minute, where that is limited. What goes out at an hour of each user's own is not. */
export const throttlePerMinuteOf = ({ channel, options }: ThrottledMessage, { throttlePerMinute }: DeliverySettings) =>
  channel === 'push' && !options.delayedOption
    ? (options.throttlePerMinute ?? throttlePerMinute) || undefined
    : undefined

export const intervalMs = (perMinute: number) => 60_000 / perMinute

type Due = { due: DueDelivery; message: ThrottledMessage & { id: MessageId } }

/** Of those that are due: who goes now, and who waits for a new place. */
export async function applyThrottle<It extends Due>(
  db: Db,
  appId: AppId,
  list: readonly It[],
  settings: DeliverySettings,
  now: Date,
): Promise<{ going: readonly It[]; waiting: Decision[] }> {
  const late = list.filter(({ due, message }) => throttlePerMinuteOf(message, settings) && hasMissedItsTime(due, now))
  const waiting = new Map<It, Decision>()
  for (const group of Map.groupBy(late, ({ message }) => message.id).values()) {
    const [{ message }] = group as [It]
    const stepMs = intervalMs(throttlePerMinuteOf(message, settings) as number)
    const firstMs = await reserveTimes(db, appId, message.id, group.length * stepMs, now)
    for (const [n, it] of group.entries()) {
      const dueAt = new Date(firstMs + n * stepMs)
      if (dueAt.getTime() > now.getTime() + SOON_MS)
        waiting.set(it, { due: it.due, change: { ...changeTo(it.due, 'pending', THROTTLED, now), dueAt } })
    }
  }
  return { going: list.filter((it) => !waiting.has(it)), waiting: [...waiting.values()] }
}

/** What is tried again was let through before. */
const hasMissedItsTime = ({ attempts, reason, dueAt }: DueDelivery, now: Date) =>
  attempts === 0 && (reason === QUIET_HOURS || now.getTime() - dueAt.getTime() > MAX_LATE_MS)

/** Behind all that were given away. Answers when the first of them is. */
async function reserveTimes(db: Db, appId: AppId, id: MessageId, lastsMs: number, now: Date): Promise<number> {
  const [taken] = await db.query<{ throttledTo: Date }>(sql`
    update messages m
    set throttled_to = greatest(m.throttled_to, ${now}) + interval '1 millisecond' * ${lastsMs}::double precision
    where m.app_id = ${appId} and m.id = ${id}
    returning m.throttled_to`)
  return (taken?.throttledTo ?? now).getTime() - lastsMs
}
