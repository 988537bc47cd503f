// All SQL of events. The primary key and an index answer the queries of other domains without reading the table:
//   how often did a user do X since T   e.app_id, e.user_id, e.name, e.at >= T   events_pk
//   who did X since T                   e.app_id, e.name, e.at >= T              events_by_name, with user_id in it
// Bound `at` wherever a time is known, so that whole months are not read. Events of a deleted user stay for about a
// minute (users/deletion-jobs.ts), so start from users, or join them.

import type { AppId, Id, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, rowsInTurns, type Sql, sql } from '../storage/sql.ts'

export type EventId = Id<'event'>

export type NewEvent = {
  id: EventId
  /** Events with the same key within a day are the same event. */
  key: string | undefined
  user: { id: UserId } | { label: string; value: string }
  name: string
  at: Date
  properties: object
}

export type EventRecord = { id: EventId; name: string; at: Date; receivedAt: Date; properties: object }

/** Whether the statement that stores events has written feed entries. */
export const HAS_FEED_ENTRIES = sql`exists (select 1 from news)`

/**
 * Stores events, except those whose key was taken after `keysFrom`. Returns the indexes of those whose user does not
 * exist. Of several with one key the first that can be stored is. It is one statement, and `user`, which finds the user
 * that a row of `r` names, is part of it, so that a user cannot be deleted long before its event is stored. The
 * statement also writes feed entries where they are watched: one for the event, under its id, and one that its user has
 * changed, because segments see events too. `job` is inserted if `HAS_FEED_ENTRIES`, and is locked after the keys.
 * `isWaiting` means that the job is not running.
 */
export async function insertEvents(
  db: Db,
  appId: AppId,
  user: Sql,
  job: Sql,
  list: readonly NewEvent[],
  { now, keysFrom }: { now: Date; keysFrom: Date },
): Promise<{ unknown: Set<number>; isWaiting: boolean }> {
  const given = list.map(({ id, key, user, name, at, properties }, n) => ({
    ...user,
    n,
    event_id: id,
    key,
    name,
    at,
    properties,
  }))
  const written = await rowsInTurns(given)
  const found = await db.query<{ n: number | null }>(sql`
    with found as materialized (
      select r.n, r.event_id, r.key, r.name, r.at, r.properties, ${user} as user_id
      from jsonb_to_recordset(${written}::jsonb)
        as r(n integer, id uuid, label text, value text, event_id uuid, key uuid, name text, at timestamptz,
          properties jsonb)
    ), firsts as materialized (
      select distinct on (coalesce(f.key, f.event_id)) f.event_id, f.key, f.name, f.at, f.properties, f.user_id
      from found f
      where f.user_id is not null
      order by coalesce(f.key, f.event_id), f.n
    ), taken as (
      insert into event_keys (app_id, key, taken_at)
      select a.id, f.key, ${now}::timestamptz
      from apps a cross join firsts f
      where a.id = ${appId} and f.key is not null
      order by f.key
      on conflict (app_id, key) do update set taken_at = excluded.taken_at
      where event_keys.taken_at <= ${keysFrom}::timestamptz
      returning key
    ), watched as materialized (
      select w.kind, w.name from watches w where w.app_id = ${appId}
    ), news as materialized (
      select f.event_id as id, f.user_id, 'event' as kind,
        jsonb_build_object('id', f.event_id, 'name', f.name, 'at', f.at, 'properties', f.properties) as event
      from watched w join firsts f on f.name = w.name
      where w.kind = 'event' and (f.key is null or f.key in (select t.key from taken t))
      union all
      select distinct on (f.user_id) md5(f.event_id::text)::uuid, f.user_id, 'change', null
      from watched w cross join firsts f
      where w.kind = 'change' and (f.key is null or f.key in (select t.key from taken t))
    ), stored as (
      insert into events (app_id, user_id, name, at, id, received_at, properties)
      select a.id, f.user_id, f.name, f.at, f.event_id, ${now}::timestamptz, f.properties
      from apps a cross join firsts f
      where a.id = ${appId} and (f.key is null or f.key in (select t.key from taken t))
    ), noted as (
      insert into user_news (app_id, id, user_id, kind, event, at)
      select a.id, n.id, n.user_id, n.kind, n.event, ${now}::timestamptz
      from apps a cross join news n
      where a.id = ${appId}
    ), asked as (${job})
    select f.n from found f where f.user_id is null
    union all
    select null where exists (select 1 from news) and not exists (select 1 from asked k where k.state = 'running')`)
  return { unknown: new Set(found.flatMap(({ n }) => n ?? [])), isWaiting: found.some(({ n }) => n === null) }
}

export type EventCursor = { at: Date; id: EventId }

/** Newest first, after the cursor. Both indexes of a user's events end in (at, id), so every page costs the same. */
export const findEvents = (
  db: Db,
  appId: AppId,
  userId: UserId,
  { name, after, limit }: { name: string | undefined; after: EventCursor | undefined; limit: number },
) =>
  db.query<EventRecord>(sql`
    select e.id, e.name, e.at, e.received_at, e.properties
    from events e
    where e.app_id = ${appId} and e.user_id = ${userId}
      ${name === undefined ? emptySql : sql`and e.name = ${name}`}
      ${after === undefined ? emptySql : sql`and e.at <= ${after.at} and (e.at, e.id) < (${after.at}, ${after.id}::uuid)`}
    order by e.at desc, e.id desc
    limit ${limit}`)

export const deleteUserEvents = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from events e where e.app_id = ${appId} and e.user_id = ${userId}`)

/** Deletes some of the keys that were taken at or before this time; a result below `limit` means that none are left. */
export async function deleteExpiredKeys(db: Db, appId: AppId, until: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from event_keys
    where app_id = ${appId} and ctid = any(array(
      select ctid from event_keys
      where app_id = ${appId} and taken_at <= ${until}
      order by taken_at
      limit ${limit}
      for update skip locked))
    returning key`)
  return deleted.length
}
