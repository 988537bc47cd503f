// The outbox of what happened to users. Two statements write feed entries themselves, in the same step as the change:
// `insertNewUsers` in new-user-store.ts, and the one that stores events.

import { type AppId, newId, type UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { FeedKind, FeedWatch, NewFeedEntry } from './feed.ts'

const UNPREPARED = { prepare: false } as const

/** Inserts only what is watched. Returns whether anything was inserted. */
export async function insertFeedEntries(
  db: Db,
  appId: AppId,
  news: readonly NewFeedEntry[],
  now: Date,
): Promise<boolean> {
  const written = await db.query(sql`
    insert into user_news (app_id, id, user_id, kind, run_id, at)
    select a.id, r.id, r."userId", r.kind, r."runId", ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows(news.map((it) => ({ ...it, id: newId() })))}::jsonb)
      as r(id uuid, "userId" uuid, kind text, "runId" uuid)
    where a.id = ${appId}
      and exists (select 1 from watches w where w.app_id = ${appId} and w.kind = r.kind and w.name = '')
    returning id`)
  return written.length > 0
}

export type FeedRow = {
  id: string
  userId: UserId
  kind: FeedKind
  runId: string | null
  event: { id: string; name: string; at: string; properties: object } | null
  at: Date
}

/** Not prepared: the table is empty most of the time, and a plan made then is a bad one for the next burst. */
export const deleteOldestFeedEntries = (db: Db, appId: AppId, limit: number) =>
  db.query<FeedRow>(
    sql`
    delete from user_news
    where app_id = ${appId} and ctid = any(array(
      select ctid from user_news
      where app_id = ${appId}
      order by at
      limit ${limit}
      for update skip locked))
    returning id, user_id, kind, run_id, event, at`,
    UNPREPARED,
  )

export const deleteUserFeedEntries = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from user_news n where n.app_id = ${appId} and n.user_id = ${userId}`, UNPREPARED)

/** One index probe for each app, however many entries are waiting. */
export const findAppsWithFeedEntriesAcrossApps = (db: Db) =>
  db.query<{ appId: AppId }>(
    sql`select a.id as app_id from apps a where exists (select 1 from user_news n where n.app_id = a.id)`,
    UNPREPARED,
  )

export const deleteOtherWatches = (db: Db, appId: AppId, watches: readonly FeedWatch[]) =>
  db.query(sql`
    delete from watches w
    where w.app_id = ${appId} and not exists (
      select 1 from jsonb_to_recordset(${rows(watches)}::jsonb) as r(kind text, name text)
      where r.kind = w.kind and r.name = w.name)`)

export const insertWatches = (db: Db, appId: AppId, watches: readonly FeedWatch[]) =>
  db.query(sql`
    insert into watches (app_id, kind, name)
    select a.id, r.kind, r.name
    from apps a cross join jsonb_to_recordset(${rows(watches)}::jsonb) as r(kind text, name text)
    where a.id = ${appId}
    on conflict (app_id, kind, name) do nothing`)
