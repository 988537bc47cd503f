// All SQL on outcomes.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, rows, sql } from '../storage/sql.ts'
import { type Attribution, hourOf, type Measure } from './measure.ts'

/** Stored in place of a message id for the count of the whole app. */
const OF_THE_APP = '00000000-0000-0000-0000-000000000000'

/**
 * Counts each outcome once for the app and once for each existing message. PostgreSQL computes the sums as decimals, so
 * that ten times 0.1 is exactly 1.
 */
export const addMeasures = (db: Db, appId: AppId, outcomes: readonly Measure[]) =>
  db.query(sql`
    insert into outcome_counts (app_id, name, message_id, hour, attribution, platform, count, sum)
    select a.id, r.name, r.message_id, r.hour, r.attribution, r.platform, count(*), sum(round(r.weight, 6))
    from apps a cross join jsonb_to_recordset(${rows(outcomes.flatMap(rowsOf))}::jsonb)
      as r(name text, message_id uuid, hour timestamptz, attribution text, platform text, weight numeric)
    where a.id = ${appId} and (r.message_id = ${OF_THE_APP}::uuid
      or exists (select 1 from messages m where m.app_id = ${appId} and m.id = r.message_id))
    group by a.id, r.name, r.message_id, r.hour, r.attribution, r.platform
    order by r.name, r.message_id, r.hour, r.attribution, r.platform
    on conflict (app_id, name, message_id, hour, attribution, platform)
    do update set count = outcome_counts.count + excluded.count, sum = outcome_counts.sum + excluded.sum`)

const rowsOf = ({ name, attribution, platform, messageIds, weight, at }: Measure) =>
  [OF_THE_APP, ...new Set(messageIds)].map((message_id) => ({
    name,
    message_id,
    hour: hourOf(at),
    attribution,
    platform,
    weight,
  }))

export type OutcomesFilter = {
  names: readonly string[]
  messageId: string | undefined
  since: Date
  attribution: Attribution | undefined
  platforms: readonly string[] | undefined
}

export const sumMeasures = (
  db: Db,
  appId: AppId,
  { names, messageId, since, attribution, platforms }: OutcomesFilter,
) =>
  db.query<{ name: string; count: number; sum: number }>(sql`
    select c.name, sum(c.count)::bigint as count, sum(c.sum) as sum
    from outcome_counts c
    where c.app_id = ${appId} and c.name = any(${names}::text[]) and c.message_id = ${messageId ?? OF_THE_APP}
      and c.hour >= ${since}
      ${attribution === undefined ? emptySql : sql`and c.attribution = ${attribution}`}
      ${platforms === undefined ? emptySql : sql`and c.platform = any(${platforms}::text[])`}
    group by c.name`)

/** Sums what devices reported about one message, or about all messages of the app that were queued since a time. */
export const sumDeliveryReports = (
  db: Db,
  appId: AppId,
  { messageId, since, platforms }: Pick<OutcomesFilter, 'messageId' | 'since' | 'platforms'>,
) =>
  db.query<{ state: string; count: number }>(sql`
    select c.state, sum(c.count)::bigint as count
    from messages m join message_counts c on c.app_id = ${appId} and c.message_id = m.id
    where m.app_id = ${appId} and c.state in ('clicked', 'received')
      ${messageId === undefined ? sql`and m.queued_at >= ${since}` : sql`and m.id = ${messageId}`}
      ${platforms === undefined ? emptySql : sql`and c.platform = any(${platforms}::text[])`}
    group by c.state`)

export async function findNames(db: Db, appId: AppId, names: readonly string[]): Promise<Set<string>> {
  const found = await db.query<{ name: string }>(sql`
    select n.name from outcome_names n where n.app_id = ${appId} and n.name = any(${names}::text[])`)
  return new Set(found.map(({ name }) => name))
}

export async function countNames(db: Db, appId: AppId): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from outcome_names n where n.app_id = ${appId}`)
  return row?.total ?? 0
}

export const insertNames = (db: Db, appId: AppId, names: readonly string[]) =>
  db.query(sql`
    insert into outcome_names (app_id, name)
    select a.id, given.name
    from apps a cross join unnest(${names}::text[]) as given(name)
    where a.id = ${appId}
    on conflict do nothing`)

/** Deletes some of the counts of earlier hours. A result below `limit` means that none are left. */
export async function deleteCountsBefore(db: Db, appId: AppId, before: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from outcome_counts
    where app_id = ${appId} and ctid = any(array(
      select ctid from outcome_counts
      where app_id = ${appId} and hour < ${before}
      order by hour
      limit ${limit}
      for update skip locked))
    returning hour`)
  return deleted.length
}
