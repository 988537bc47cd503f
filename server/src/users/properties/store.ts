// SQL on users, their activity and their purchases.

import type { AppId, NewId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { activityRow, type UserRow } from '../rows.ts'
import type { NewPurchases, User } from '../user.ts'
import { USER_COLUMN_NAMES, USER_COLUMN_TYPES } from './columns.ts'

export const insertUsers = (db: Db, appId: AppId, list: UserRow[], now: Date) =>
  db.query(sql`
  insert into users (app_id, id, tags, ${USER_COLUMN_NAMES}, first_active, amount_spent, created_at, updated_at)
  select a.id, r.id, r.tags, ${USER_COLUMN_NAMES}, r.first_active, r.amount_spent, ${now}::timestamptz,
    ${now}::timestamptz
  from apps a cross join jsonb_to_recordset(${rows(list)}::jsonb)
    as r(id uuid, tags jsonb, ${USER_COLUMN_TYPES}, first_active timestamptz, amount_spent numeric)
  where a.id = ${appId}`)

export const updateUsers = (db: Db, appId: AppId, list: UserRow[], now: Date) =>
  db.query(sql`
  update users u
  set (tags, ${USER_COLUMN_NAMES}, first_active, amount_spent) = (
      select tags, ${USER_COLUMN_NAMES}, first_active, amount_spent
      from jsonb_to_record(l.item) as r(tags jsonb, ${USER_COLUMN_TYPES}, first_active timestamptz, amount_spent numeric)),
    updated_at = ${now}::timestamptz
  from jsonb_array_elements(${rows(list)}::jsonb) as l(item)
  where u.app_id = ${appId} and u.id = (l.item ->> 'id')::uuid`)

export const deleteUsers = (db: Db, appId: AppId, ids: UserId[]) =>
  db.query(sql`delete from users u where u.app_id = ${appId} and u.id = any(${ids}::uuid[])`)

export const upsertUserActivity = (db: Db, appId: AppId, list: User[]) =>
  db.query(sql`
  insert into user_activity (app_id, user_id, last_active, session_count, session_time)
  select a.id, r.id, r.last_active, r.session_count, r.session_time
  from apps a cross join jsonb_to_recordset(${rows(list.map((user) => activityRow(user.id, user.properties)))}::jsonb)
    as r(id uuid, last_active timestamptz, session_count bigint, session_time bigint)
  where a.id = ${appId}
  on conflict (app_id, user_id) do update
  set last_active = excluded.last_active, session_count = excluded.session_count,
    session_time = excluded.session_time`)

export const insertPurchases = (db: Db, appId: AppId, list: NewPurchases[], now: Date, newId: NewId) =>
  db.query(sql`
  with bought as materialized (
    select r.user_id, r.position, r.id, r.sku, r.iso, r.amount, r.count,
      (select max(p.position) + 1 from purchases p
       where p.app_id = ${appId} and p.user_id = r.user_id and p.bought_at = ${now}::timestamptz) as next
    from jsonb_to_recordset(${rows(
      list
        .flatMap(({ userId, purchases }) => purchases.map((it) => ({ ...it, user_id: userId })))
        .map((it, position) => ({ ...it, position, id: newId() })),
    )}::jsonb) as r(user_id uuid, position integer, id uuid, sku text, iso text, amount text, count integer)
  )
  insert into purchases (app_id, user_id, bought_at, position, id, sku, iso, amount, count)
  select a.id, b.user_id, ${now}::timestamptz, b.position + coalesce(b.next, 0), b.id, b.sku, b.iso, b.amount, b.count
  from apps a cross join bought b
  where a.id = ${appId}`)
