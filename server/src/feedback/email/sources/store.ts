// All SQL on email event sources and on the receipts of their events.

import type { AppId } from '../../../lib/ids.ts'
import type { Db } from '../../../storage/db.ts'
import { sql } from '../../../storage/sql.ts'
import type { EmailEventSource } from './source.ts'

export type StoredSource = { source: EmailEventSource; settings: object; secret: string | null }

export const findSources = (db: Db, appId: AppId) =>
  db.query<StoredSource>(sql`select source, settings, secret from email_event_sources where app_id = ${appId}`)

export async function findSource(db: Db, appId: AppId, source: EmailEventSource): Promise<StoredSource | undefined> {
  const [found] = await db.query<StoredSource>(sql`
    select source, settings, secret from email_event_sources where app_id = ${appId} and source = ${source}`)
  return found
}

export const upsertSource = (db: Db, appId: AppId, { source, settings, secret }: StoredSource, now: Date) =>
  db.query(sql`
    insert into email_event_sources (app_id, source, settings, secret, updated_at)
    select a.id, ${source}, ${JSON.stringify(settings)}::jsonb, ${secret}, ${now}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict (app_id, source) do update
    set settings = excluded.settings, secret = excluded.secret, updated_at = excluded.updated_at`)

export const deleteSource = (db: Db, appId: AppId, source: EmailEventSource) =>
  db.query(sql`delete from email_event_sources where app_id = ${appId} and source = ${source}`)

/** A plan cached while there were few receipts would read all of them on every call. */
const UNPREPARED = { prepare: false } as const

/**
 * Returns the receipts that the caller is to handle: new ones, and ones claimed before `staleBefore` but never
 * finished.
 */
export async function claimReceipts(
  db: Db,
  appId: AppId,
  source: EmailEventSource,
  events: readonly string[],
  { now, staleBefore }: { now: Date; staleBefore: Date },
): Promise<Set<string>> {
  const taken = await db.query<{ event: string }>(sql`
    insert into email_event_receipts (app_id, source, event, taken_at)
    select a.id, ${source}, r.event, ${now}::timestamptz
    from apps a cross join unnest(${events}::text[]) r(event)
    where a.id = ${appId}
    order by r.event
    on conflict (app_id, source, event) do update set taken_at = excluded.taken_at
    where not email_event_receipts.is_done and email_event_receipts.taken_at < ${staleBefore}::timestamptz
    returning event`)
  return new Set(taken.map(({ event }) => event))
}

/** Whether another server is handling one of them now. */
export async function areClaimed(
  db: Db,
  appId: AppId,
  source: EmailEventSource,
  events: readonly string[],
): Promise<boolean> {
  const found = await db.query(
    sql`
    select event from email_event_receipts
    where app_id = ${appId} and source = ${source} and event = any(${events}::text[]) and not is_done
    limit 1`,
    UNPREPARED,
  )
  return found.length > 0
}

export const finishReceipts = (db: Db, appId: AppId, source: EmailEventSource, events: readonly string[]) =>
  db.query(
    sql`
    update email_event_receipts set is_done = true
    where app_id = ${appId} and source = ${source} and event = any(${events}::text[])`,
    UNPREPARED,
  )

export const releaseReceipts = (db: Db, appId: AppId, source: EmailEventSource, events: readonly string[]) =>
  db.query(
    sql`
    delete from email_event_receipts
    where app_id = ${appId} and source = ${source} and event = any(${events}::text[]) and not is_done`,
    UNPREPARED,
  )

/** Returns how many were deleted, at most `limit`. */
export async function deleteOldReceipts(db: Db, appId: AppId, before: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from email_event_receipts
    where app_id = ${appId} and ctid = any(array(
      select ctid from email_event_receipts
      where app_id = ${appId} and taken_at < ${before}
      order by taken_at
      limit ${limit}
      for update skip locked))
    returning event`)
  return deleted.length
}
