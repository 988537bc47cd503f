// All SQL on messages that are being expanded: which ones, and how far they came.

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
  /** Until when the places of its throttle are taken. */
  throttledTo: Date | null
}

export const columns = sql`m.id, m.channel, m.lane, m.state, m.audience, m.options, m.send_after, m.expand_at, m.expanded_to,
  m.expanded_count, m.throttled_to`

/**
 * Direct messages whose time has come. One that somebody has locked is waited for: were it left out, and left as it was by who
 * has it, nobody would come back to it.
 */
export const lockUnexpandedDirect = (db: Db, appId: AppId, now: Date, limit: number) =>
  db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.state = 'scheduled' and m.lane = 'direct' and m.send_after <= ${now}
    order by m.send_after
    limit ${limit}
    for update`)

/** Undefined when there is nothing (more) to expand: it is done, was canceled, or is gone. */
export async function lockUnexpanded(db: Db, appId: AppId, id: MessageId): Promise<UnexpandedMessage | undefined> {
  const [found] = await db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state in ('scheduled', 'expanding')
    for no key update`)
  return found
}

/** The same without the lock: what it says may have changed by the time it is acted on. */
export async function findUnexpanded(db: Db, appId: AppId, id: MessageId): Promise<UnexpandedMessage | undefined> {
  const [found] = await db.query<UnexpandedMessage>(sql`
    select ${columns} from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state in ('scheduled', 'expanding')`)
  return found
}

export const findUnexpandedEmails = (db: Db, appId: AppId, now: Date, limit: number) =>
  db.query<Pick<UnexpandedMessage, 'id' | 'audience'>>(sql`
    select m.id, m.audience from messages m
    where m.app_id = ${appId} and m.state = 'scheduled' and m.lane = 'direct' and m.send_after <= ${now}
      and m.channel = 'email'
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

/** How many of a message's deliveries were given a time so far; only who expands it writes that part of its counts. */
export async function countPlanned(db: Db, appId: AppId, id: MessageId): Promise<number> {
  const [found] = await db.query<{ count: number }>(sql`
    select coalesce(sum(c.count), 0)::bigint as count
    from message_counts c
    where c.app_id = ${appId} and c.message_id = ${id} and c.state = 'pending' and c.part = ${EXPAND_COUNT_PART}`)
  return found?.count ?? 0
}
