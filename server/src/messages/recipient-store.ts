// SQL on those who were added to an open message and wait to be expanded, and on whether it is open.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { Lane, MessageId, RunId } from './message.ts'

/** Thousands come and go within a minute: a plan is made for what is there now. */
const UNPREPARED = { prepare: false } as const

/** A run belongs to one user. */
export type Recipient = { userId: UserId; runId: RunId }

/** Whether somebody can be added to it; it stays so until the transaction ends. Others may add, and it may be expanded, meanwhile. */
export async function lockOpen(db: Db, appId: AppId, id: MessageId, now: Date): Promise<boolean> {
  const found = await db.query(sql`
    select m.id from messages m
    where m.app_id = ${appId} and m.id = ${id} and m.state = 'expanding' and m.audience ->> 'kind' = 'recipients'
      and (m.audience ->> 'until')::timestamptz >= ${now}
    for key share`)
  return found.length > 0
}

/** Who waits already does so once. */
export const insertRecipients = (db: Db, appId: AppId, id: MessageId, recipients: readonly Recipient[]) =>
  db.query(sql`
    insert into message_recipients (app_id, message_id, run_id, user_id)
    select a.id, ${id}::uuid, r."runId", r."userId"
    from apps a cross join jsonb_to_recordset(${rows(recipients)}::jsonb) r("runId" uuid, "userId" uuid)
    where a.id = ${appId}
    order by r."runId"
    on conflict (app_id, message_id, run_id) do nothing`)

/** Those that `takeRecipients` would take. */
export const findRecipients = (db: Db, appId: AppId, id: MessageId, limit: number) =>
  db.query<Recipient>(
    sql`
    select r.user_id, r.run_id from message_recipients r
    where r.app_id = ${appId} and r.message_id = ${id}
    order by r.run_id
    limit ${limit}`,
    UNPREPARED,
  )

/** The next ones, and they wait no more. */
export const takeRecipients = (db: Db, appId: AppId, id: MessageId, limit: number) =>
  db.query<Recipient>(
    sql`
    delete from message_recipients
    where app_id = ${appId} and ctid = any(array(
      select ctid from message_recipients
      where app_id = ${appId} and message_id = ${id}
      order by run_id
      limit ${limit}
      for update))
    returning user_id, run_id`,
    UNPREPARED,
  )

/** Whether nobody waits; nobody can be added until the transaction ends. */
export async function lockEmptied(db: Db, appId: AppId, id: MessageId): Promise<boolean> {
  await db.query(sql`select m.id from messages m where m.app_id = ${appId} and m.id = ${id} for update`)
  return (await findRecipients(db, appId, id, 1)).length === 0
}

export async function isRecipient(db: Db, appId: AppId, id: MessageId, userId: UserId): Promise<boolean> {
  const found = await db.query(
    sql`
    select 1 from message_recipients r
    where r.app_id = ${appId} and r.message_id = ${id} and r.user_id = ${userId}
    limit 1`,
    UNPREPARED,
  )
  return found.length > 0
}

export const deleteRecipients = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query(
    sql`delete from message_recipients r where r.app_id = ${appId} and r.message_id = any(${ids}::uuid[])`,
    UNPREPARED,
  )

export type LeftOver = { appId: AppId; id: MessageId; lane: Lane }

/** Open messages that are to be closed because their time was over by then, and those for which somebody waits. */
export const findLeftOverAcrossApps = (db: Db, overBy: Date) =>
  db.query<LeftOver>(
    sql`
    select m.app_id, m.id, m.lane from messages m
    where m.state = 'expanding' and m.audience ->> 'kind' = 'recipients'
      and ((m.audience ->> 'until')::timestamptz <= ${overBy}
        or exists (select 1 from message_recipients r where r.app_id = m.app_id and r.message_id = m.id))
    order by m.app_id, m.id`,
    UNPREPARED,
  )
