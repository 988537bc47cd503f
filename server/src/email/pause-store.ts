// All SQL on email_pauses.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

export type PauseRow = { pausedAt: Date | null; resumedAt: Date | null }

export async function findPauseRow(db: Db, appId: AppId): Promise<PauseRow | undefined> {
  const [found] = await db.query<PauseRow>(sql`
    select paused_at, resumed_at from email_pauses where app_id = ${appId}`)
  return found
}

/**
 * Returns false when email is already paused, or was resumed after the counted period began. Of concurrent calls, one
 * succeeds.
 */
export async function insertPause(
  db: Db,
  appId: AppId,
  { detail, countedFrom, now }: { detail: object; countedFrom: Date; now: Date },
): Promise<boolean> {
  const paused = await db.query(sql`
    insert into email_pauses (app_id, paused_at, detail)
    select a.id, ${now}::timestamptz, ${JSON.stringify(detail)}::jsonb
    from apps a
    where a.id = ${appId}
    on conflict (app_id) do update set paused_at = excluded.paused_at, detail = excluded.detail
    where email_pauses.paused_at is null
      and (email_pauses.resumed_at is null or email_pauses.resumed_at <= ${countedFrom}::timestamptz)
    returning app_id`)
  return paused.length > 0
}

/** Returns false when email is not paused. */
export async function clearPause(db: Db, appId: AppId, now: Date): Promise<boolean> {
  const resumed = await db.query(sql`
    update email_pauses set paused_at = null, resumed_at = ${now}
    where app_id = ${appId} and paused_at is not null
    returning app_id`)
  return resumed.length > 0
}

/** The few apps, of all, whose email is paused now. */
export const findPausedAcrossApps = (db: Db) =>
  db.query<{ appId: AppId; pausedAt: Date }>(sql`
    select app_id, paused_at from email_pauses where paused_at is not null order by app_id`)
