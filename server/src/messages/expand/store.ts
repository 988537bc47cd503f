// All SQL on messages that are being expanded, and their progress.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { EXPAND_COUNT_PART } from '../delivery.ts'
import type { Message, MessageId } from '../message.ts'

export type UnexpandedMessage = Pick<
  Message,
  | 'id'
  | 'channel'
  | 'lane'
  | 'state'
  | 'audience'
  | 'options'
  | 'sendAfter'
  | 'expandAt'
  | 'expandedTo'
  | 'expandedCount'
> & {
  /** Until when the throttle's send times are taken. */
  throttledTo: Date | null
}

export const columns = sql`m.id, m.channel, m.lane, m.state, m.audience, m.options, m.send_after, m.expand_at, m.expanded_to,
  m.expanded_count, m.throttled_to`

/**
 * Direct messages whose time has come. Waits for locked ones: if a locked message was skipped and its owner rolled
 * back, nobody would come back to it.
 */
export const lockUnexpandedDirect = (db: Db, appId: AppId, now: Date, limit: number) =>
  db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.state = 'scheduled' and m.lane = 'direct' and m.send_after <= ${now}
    order by m.send_after
    limit ${limit}
    for update`)

/** Returns undefined when there is nothing (left) to expand: the message is expanded, canceled or deleted. */
export async function lockUnexpanded(db: Db, appId: AppId, id: MessageId): Promise<UnexpandedMessage | undefined> {
  const [found] = await db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state in ('scheduled', 'expanding')
    for no key update`)
  return found
}

/** The same without the lock, so the message may have changed by the time the caller acts on it. */
export async function findUnexpanded(db: Db, appId: AppId, id: MessageId): Promise<UnexpandedMessage | undefined> {
  const [found] = await db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state in ('scheduled', 'expanding')`)
  return found
}

/** The direct messages of some channels whose time has come. */
export const findUnexpandedDirectOf = (
  db: Db,
  appId: AppId,
  channels: readonly UnexpandedMessage['channel'][],
  now: Date,
  limit: number,
) =>
  db.query<Pick<UnexpandedMessage, 'id' | 'channel' | 'audience'>>(sql`
    select m.id, m.channel, m.audience from messages m
    where m.app_id = ${appId} and m.state = 'scheduled' and m.lane = 'direct' and m.send_after <= ${now}
      and m.channel = any(${channels}::text[])
    order by m.send_after
    limit ${limit}`)

export type ExpandProgress = {
  id: MessageId
  expandAt: Date
  expandedTo: SubscriptionId | null
  count: number
  isDone: boolean
  throttledTo?: Date | null
}

export const writeProgress = (db: Db, appId: AppId, list: readonly ExpandProgress[]) =>
  db.query(sql`
    update messages m
    set state = case when r."isDone" then 'sending' else 'expanding' end, expand_at = r."expandAt",
      expanded_to = r."expandedTo", expanded_count = m.expanded_count + r.count,
      throttled_to = coalesce(r."throttledTo", m.throttled_to)
    from jsonb_to_recordset(${rows(list)}::jsonb)
      as r(id uuid, "expandAt" timestamptz, "expandedTo" uuid, count bigint, "isDone" boolean, "throttledTo" timestamptz)
    where m.app_id = ${appId} and m.id = r.id`)

/**
 * How many of the message's deliveries have a send time so far. Only the worker that expands it writes this part of its
 * counts.
 */
export async function countPlanned(db: Db, appId: AppId, id: MessageId): Promise<number> {
  const [found] = await db.query<{ count: number }>(sql`
    select coalesce(sum(c.count), 0)::bigint as count
    from message_counts c
    where c.app_id = ${appId} and c.message_id = ${id} and c.state = 'pending' and c.part = ${EXPAND_COUNT_PART}`)
  return found?.count ?? 0
}
