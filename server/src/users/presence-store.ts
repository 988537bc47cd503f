// SQL on where and when users are.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

export type Presence = { userId: UserId; timezoneId: string | null; lastActive: Date }

/** Whoever was never active was last there when they were created. */
export const findPresence = (db: Db, appId: AppId, ids: readonly UserId[]) =>
  db.query<Presence>(sql`
    select u.id as user_id, u.timezone_id, coalesce(t.last_active, u.created_at) as last_active
    from users u left join user_activity t on t.app_id = ${appId} and t.user_id = u.id
    where u.app_id = ${appId} and u.id = any(${ids}::uuid[])`)
