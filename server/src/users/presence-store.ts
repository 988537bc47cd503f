// SQL on where and when users are active.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'

export type Presence = { userId: UserId; timezoneId: string | null; lastActive: Date }

/** A user who was never active counts as last active when created. */
export const findPresence = (db: Db, appId: AppId, ids: readonly UserId[]) =>
  db.query<Presence>(sql`
    select u.id as user_id, u.timezone_id, coalesce(t.last_active, u.created_at) as last_active
    from users u left join user_activity t on t.app_id = ${appId} and t.user_id = u.id
    where u.app_id = ${appId} and u.id = any(${ids}::uuid[])`)

export async function findExistingUsers(db: Db, appId: AppId, ids: readonly UserId[]): Promise<Set<UserId>> {
  const found = await db.query<{ id: UserId }>(sql`
    select u.id from users u where u.app_id = ${appId} and u.id = any(${ids}::uuid[])`)
  return new Set(found.map(({ id }) => id))
}

export async function countUsers(db: Db, appId: AppId): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`select count(*) as total from users u where u.app_id = ${appId}`)
  return row?.total ?? 0
}

/** For each time, the number of users who were last active after it. */
export const countActiveUsers = (
  db: Db,
  appId: AppId,
  times: readonly { seconds: number; after: Date }[],
  upTo: Date,
) =>
  db.query<{ seconds: number; users: number }>(
    sql`
    select w.seconds, count(*) as users
    from user_activity t
    join jsonb_to_recordset(${rows(times)}::jsonb) as w(seconds integer, after timestamptz) on t.last_active > w.after
    where t.app_id = ${appId} and t.last_active <= ${upTo}
    group by w.seconds`,
    { prepare: false },
  )
