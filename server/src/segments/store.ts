// All SQL on segments, except what filters compile to: see compile.ts and audience.ts.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { spentSql } from './filters/compile.ts'
import type { Segment, SegmentId } from './segment.ts'

const columns = sql`g.id, g.name, g.description, g.filters, g.created_at, g.updated_at`

/** Returns false when its id or its name is taken. */
export async function insertSegment(db: Db, appId: AppId, it: Segment): Promise<boolean> {
  const made = await db.query(sql`
    insert into segments (app_id, id, name, description, filters, created_at, updated_at)
    select a.id, ${it.id}::uuid, ${it.name}::text, ${it.description}::text, ${JSON.stringify(it.filters)}::jsonb,
      ${it.createdAt}::timestamptz, ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict do nothing
    returning id`)
  return made.length > 0
}

/** Nobody else can change or delete the segment until the transaction ends. */
export async function lockSegment(db: Db, appId: AppId, id: SegmentId): Promise<Segment | undefined> {
  const [found] = await db.query<Segment>(sql`
    select ${columns} from segments g where g.app_id = ${appId} and g.id = ${id} for update`)
  return found
}

export const updateSegmentRow = (db: Db, appId: AppId, it: Segment) =>
  db.query(sql`
    update segments
    set name = ${it.name}, description = ${it.description}, filters = ${JSON.stringify(it.filters)},
      updated_at = ${it.updatedAt}
    where app_id = ${appId} and id = ${it.id}`)

/** Returns the name of the segment that this very call deleted. */
export async function deleteSegmentRow(db: Db, appId: AppId, id: SegmentId): Promise<string | undefined> {
  const [gone] = await db.query<{ name: string }>(sql`
    delete from segments where app_id = ${appId} and id = ${id} returning name`)
  return gone?.name
}

export async function findSegment(db: Db, appId: AppId, id: SegmentId): Promise<Segment | undefined> {
  const [found] = await db.query<Segment>(sql`
    select ${columns} from segments g where g.app_id = ${appId} and g.id = ${id}`)
  return found
}

export const findSegmentsByName = (db: Db, appId: AppId, names: readonly string[]) =>
  db.query<Segment>(sql`select ${columns} from segments g where g.app_id = ${appId} and g.name = any(${names}::text[])`)

export const findSegmentsById = (db: Db, appId: AppId, ids: readonly SegmentId[]) =>
  db.query<Segment>(sql`select ${columns} from segments g where g.app_id = ${appId} and g.id = any(${ids}::uuid[])`)

/** Returns those that exist. Nobody can change or delete them until the transaction ends. */
export const lockSegmentsForShare = (db: Db, appId: AppId, ids: readonly SegmentId[]) =>
  db.query<{ id: SegmentId }>(sql`
    select g.id from segments g where g.app_id = ${appId} and g.id = any(${ids}::uuid[]) order by g.id for share`)

export const findSegments = (db: Db, appId: AppId, limit: number, offset: number) =>
  db.query<Segment>(sql`
    select ${columns} from segments g
    where g.app_id = ${appId}
    order by g.created_at, g.id
    limit ${limit} offset ${offset}`)

export async function countSegments(db: Db, appId: AppId): Promise<number> {
  const [row] = await db.query<{ total: number }>(
    sql`select count(*) as total from segments g where g.app_id = ${appId}`,
  )
  return row?.total ?? 0
}

export const pingDatabase = (db: Db) => db.query(sql`select 1`)

/** What a user spent on each SKU. SKUs that were never bought are absent. */
export const sumPurchases = (db: Db, appId: AppId, userId: UserId, skus: readonly string[]) =>
  db.query<{ sku: string; spent: string }>(sql`
    select p.sku, ${spentSql}::text as spent from purchases p
    where p.app_id = ${appId} and p.user_id = ${userId} and p.sku = any(${skus}::text[])
    group by p.sku`)

export type EventCountQuery = { name: string; since: Date | null }

/** How often the user caused each event, in the order of `questions`. */
export async function countEvents(
  db: Db,
  appId: AppId,
  userId: UserId,
  questions: readonly EventCountQuery[],
  now: Date,
): Promise<number[]> {
  const rows = await db.query<{ n: number; total: number }>(sql`
    select r.n, (select count(*) from events e
      where e.app_id = ${appId} and e.user_id = ${userId} and e.name = r.name and e.at <= ${now}::timestamptz
        and e.at > coalesce(r.since, '-infinity')) as total
    from jsonb_to_recordset(${JSON.stringify(questions.map((it, n) => ({ ...it, n })))}::jsonb)
      as r(n integer, name text, since timestamptz)
    order by r.n`)
  return rows.map(({ total }) => total)
}
