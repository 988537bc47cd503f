// All SQL of the engine on messages, except that of expansion.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Message, MessageId } from '../message.ts'

export type LockedMessage = Pick<Message, 'id' | 'state' | 'expandAt' | 'options'>

export async function lockMessage(db: Db, appId: AppId, id: MessageId): Promise<LockedMessage | undefined> {
  const [found] = await db.query<LockedMessage>(sql`
    select m.id, m.state, m.expand_at, m.options from messages m
    where m.app_id = ${appId} and m.id = ${id}
    for update`)
  return found
}

export async function findCanceled(db: Db, appId: AppId, id: MessageId): Promise<LockedMessage | undefined> {
  const [found] = await db.query<LockedMessage>(sql`
    select m.id, m.state, m.expand_at, m.options from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state = 'canceled'`)
  return found
}

export type UncanceledMessage = { id: MessageId; atLeastOnce: boolean }

/**
 * Returns the messages that are not canceled. Nobody can cancel them until the transaction ends, because a cancel locks
 * them `for update`. Expanding one meanwhile, which journeys do all day, does not wait for this lock.
 */
export async function lockUncanceled(
  db: Db,
  appId: AppId,
  ids: readonly MessageId[],
): Promise<Map<MessageId, UncanceledMessage>> {
  const found = await db.query<UncanceledMessage>(sql`
    select m.id, coalesce((m.options ->> 'atLeastOnce')::boolean, false) as at_least_once
    from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state <> 'canceled'
    order by m.id
    for key share`)
  return new Map(found.map((it) => [it.id, it]))
}

/** Locks the messages that are being sent, in the order of their ids. */
export async function lockSending(db: Db, appId: AppId, ids: readonly MessageId[]): Promise<MessageId[]> {
  const found = await db.query<{ id: MessageId }>(sql`
    select m.id from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'sending'
    order by m.id
    for update`)
  return found.map(({ id }) => id)
}

export const markDone = (db: Db, appId: AppId, ids: readonly MessageId[], now: Date) =>
  db.query(sql`
    update messages m set state = 'done', completed_at = ${now}
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'sending'`)

export type SendingMessage = { appId: AppId; id: MessageId }

/** There are few such rows, and a partial index finds them. */
export const findSendingAcrossApps = (db: Db) =>
  db.query<SendingMessage>(sql`select m.app_id, m.id from messages m where m.state = 'sending' order by m.app_id, m.id`)

/** Called when a delivery of the message is pending again. */
export const reopenMessage = (db: Db, appId: AppId, id: MessageId) =>
  db.query(sql`
    update messages m set state = 'sending', completed_at = null
    where m.app_id = ${appId} and m.id = ${id} and m.state = 'done'`)

/**
 * Messages expanded since then. `madeSince` bounds the index scan: no message is created earlier than that before it is
 * expanded.
 */
export const findExpandedSince = (db: Db, appId: AppId, since: Date, madeSince: Date) =>
  db.query<{ id: MessageId; expandAt: Date }>(sql`
    select m.id, m.expand_at from messages m
    where m.app_id = ${appId} and m.queued_at >= ${madeSince} and m.expand_at >= ${since}
    order by m.queued_at`)

/** Deletes at most `limit` messages that were completed or canceled before then. */
export const deleteMessagesBefore = (db: Db, appId: AppId, before: Date, limit: number) =>
  db.query<{ id: MessageId }>(sql`
    delete from messages
    where app_id = ${appId} and ctid = any(array(
      select ctid from messages
      where app_id = ${appId} and queued_at < ${before} and coalesce(completed_at, canceled_at) < ${before}
      order by queued_at
      limit ${limit}
      for update skip locked))
    returning id`)
