// All SQL on what users were sent recently, for frequency caps.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { Message } from '../message.ts'

/** The time of each send in milliseconds, by `message subscription`, or `message/run subscription` in a run. */
export type SendTimes = Record<string, number>
export type RecentSends = { userId: UserId; sends: SendTimes }

/** Locks a row for each user, in the order of their ids. */
export async function lockRecentSends(
  db: Db,
  appId: AppId,
  channel: Message['channel'],
  userIds: readonly UserId[],
  now: Date,
) {
  await db.query(sql`
    insert into recent_sends (app_id, channel, user_id, updated_at)
    select a.id, ${channel}, r.id, ${now}::timestamptz
    from apps a cross join unnest(${userIds}::uuid[]) r(id)
    where a.id = ${appId}
    order by r.id
    on conflict (app_id, channel, user_id) do nothing`)
  const found = await db.query<RecentSends>(sql`
    select s.user_id, s.sends
    from recent_sends s
    where s.app_id = ${appId} and s.channel = ${channel} and s.user_id = any(${userIds}::uuid[])
    order by s.user_id
    for update`)
  return new Map(found.map(({ userId, sends }) => [userId, sends]))
}

export const writeRecentSends = (
  db: Db,
  appId: AppId,
  channel: Message['channel'],
  list: readonly RecentSends[],
  now: Date,
) =>
  db.query(sql`
    update recent_sends s set sends = r.sends, updated_at = ${now}
    from jsonb_to_recordset(${rows(list)}::jsonb) as r("userId" uuid, sends jsonb)
    where s.app_id = ${appId} and s.channel = ${channel} and s.user_id = r."userId"`)

export const deleteRecentSendsOf = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from recent_sends s where s.app_id = ${appId} and s.user_id = ${userId}`)

/** Deletes sends that are older than the window of any cap. */
export const deleteRecentSendsBefore = (db: Db, appId: AppId, before: Date) =>
  db.query(sql`delete from recent_sends s where s.app_id = ${appId} and s.updated_at < ${before}`)
