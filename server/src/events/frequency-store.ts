// SQL on how frequent events are, from which a dry run predicts the future.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, rows, sql } from '../storage/sql.ts'
import type { EventId } from './store.ts'

/** Planned for the actual values: a name may have no event, or millions. */
const UNPREPARED = { prepare: false } as const

/** A period that includes its end but not its start. */
export type EventPeriod = { after: Date; upTo: Date }

/** For each event and each time, how many users did it last after that time. */
export const countDoers = (
  db: Db,
  appId: AppId,
  names: readonly string[],
  times: readonly { seconds: number; after: Date }[],
  { after, upTo }: EventPeriod,
) =>
  db.query<{ name: string; seconds: number; users: number }>(
    sql`
    select l.name, w.seconds, count(*) as users
    from (
      select e.name, e.user_id, max(e.at) as last_at
      from events e
      where e.app_id = ${appId} and e.name = any(${names}::text[]) and e.at > ${after} and e.at <= ${upTo}
      group by e.name, e.user_id) l
    join jsonb_to_recordset(${rows(times)}::jsonb) as w(seconds integer, after timestamptz) on l.last_at > w.after
    group by l.name, w.seconds`,
    UNPREPARED,
  )

/** The newest ones, as examples of their properties. */
export const findNewestEvents = (db: Db, appId: AppId, name: string, { after, upTo }: EventPeriod, limit: number) =>
  db.query<{ properties: Record<string, unknown> }>(
    sql`
    select e.properties from events e
    where e.app_id = ${appId} and e.name = ${name} and e.at > ${after} and e.at <= ${upTo}
    order by e.at desc
    limit ${limit}`,
    UNPREPARED,
  )

export async function countEventsNamed(
  db: Db,
  appId: AppId,
  name: string,
  { after, upTo }: EventPeriod,
): Promise<number> {
  const [row] = await db.query<{ total: number }>(
    sql`
    select count(*) as total
    from events e join users u on u.app_id = ${appId} and u.id = e.user_id
    where e.app_id = ${appId} and e.name = ${name} and e.at > ${after} and e.at <= ${upTo}`,
    UNPREPARED,
  )
  return row?.total ?? 0
}

export type NamedEvent = { id: EventId; userId: UserId; at: Date; properties: Record<string, unknown> }

/** In the order of their ids, which are random, so that any part of them is a fair sample. */
export const findEventsNamed = (
  db: Db,
  appId: AppId,
  name: string,
  { after, upTo }: EventPeriod,
  beyond: EventId | undefined,
  limit: number,
) =>
  db.query<NamedEvent>(
    sql`
    select e.id, e.user_id, e.at, e.properties
    from events e join users u on u.app_id = ${appId} and u.id = e.user_id
    where e.app_id = ${appId} and e.name = ${name} and e.at > ${after} and e.at <= ${upTo}
      ${beyond === undefined ? emptySql : sql`and e.id > ${beyond}::uuid`}
    order by e.id
    limit ${limit}`,
    UNPREPARED,
  )
