// All SQL on the state and the settings of sending. The SQL on notices is in notice-store.ts.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, type Sql, sql } from '../storage/sql.ts'
import type { HoldTimes } from './hold.ts'
import { DEFAULT_SETTINGS, type DeliverySettings } from './settings.ts'

export const ensureSending = (db: Db, appId: AppId) =>
  db.query(sql`
    insert into app_sending (app_id)
    select a.id from apps a where a.id = ${appId}
    on conflict (app_id) do nothing`)

/** A condition: the app was disabled. That may have ended by itself; `readSending` knows. */
export const wasDisabled = (appId: AppId): Sql =>
  sql`exists (select 1 from app_sending s where s.app_id = ${appId} and s.disabled_at is not null)`

export type LockedSending = HoldTimes & { used: number; countedAt: Date | null; disabledAt: Date | null }

/**
 * Undefined while the app has no row. Later statements of the transaction see everything that earlier holders of the
 * lock did.
 */
export async function lockSending(db: Db, appId: AppId): Promise<LockedSending | undefined> {
  const [found] = await db.query<LockedSending>(sql`
    select s.used, s.counted_at, s.disabled_at, s.paused_at, v.paused_at as server_paused_at, v.restored_at
    from app_sending s cross join server_sending v
    where s.app_id = ${appId}
    for update of s`)
  return found
}

/**
 * How many messages the app may send in any window, according to its present subscriptions. An app without subscribed
 * subscriptions can still send to unsubscribed ones with `include_unsubscribed`. With a limit of zero those emails
 * would wait for ever, so all its subscriptions count then.
 */
const allowedSql = (appId: AppId): Sql => sql`
  coalesce((select d.limit_factor from delivery_settings d where d.app_id = ${appId}), ${DEFAULT_SETTINGS.limitFactor}::integer)
    * coalesce((select coalesce(nullif(sum(c.subscribed), 0), sum(c.players)) from player_counts c where c.app_id = ${appId}), 0)::bigint`

export type UsageBooking = {
  count: number
  now: Date
  countedAt: Date
  second: Date
  agedUntil: Date
  used: number
  isDisabled: boolean
}
/** `isOpen`: the app was not disabled, or that had ended. */
export type BookedUsage = { granted: number; used: number; allowed: number; isOpen: boolean; disabledAt: Date | null }

/**
 * Drops expired buckets, grants as much of the remaining limit as is requested, and disables the app if that is not
 * everything. Runs under the lock of the app's row, from which `used` and `isDisabled` were read.
 */
export async function bookUsage(db: Db, appId: AppId, booking: UsageBooking): Promise<BookedUsage> {
  const { count, now, countedAt, second, agedUntil, used, isDisabled } = booking
  const [booked] = await db.query<BookedUsage>(sql`
    with aged as (
      delete from sending_usage
      where app_id = ${appId} and second <= ${agedUntil}
      returning count
    ), counted as materialized (
      select ${used}::bigint - coalesce((select sum(g.count) from aged g), 0)::bigint as used, ${allowedSql(appId)} as allowed
    ), decided as materialized (
      select c.used, c.allowed, c.used * 2 < c.allowed or not ${isDisabled}::boolean as is_open
      from counted c
    ), granted as materialized (
      select d.used, d.allowed, d.is_open,
        case when d.is_open then least(${count}::bigint, greatest(d.allowed - d.used, 0)) else 0 end as granted
      from decided d
    ), booked as (
      insert into sending_usage (app_id, second, count)
      select a.id, ${second}::timestamptz, g.granted
      from apps a cross join granted g
      where a.id = ${appId} and g.granted > 0
      on conflict (app_id, second) do update set count = sending_usage.count + excluded.count
    )
    update app_sending s set
      used = g.used + g.granted,
      counted_at = ${countedAt}::timestamptz,
      enabled_at = case when g.is_open and ${isDisabled}::boolean then ${now}::timestamptz else s.enabled_at end,
      disabled_at = case when not g.is_open then s.disabled_at when g.granted < ${count}::bigint then ${now}::timestamptz end
    from granted g
    where s.app_id = ${appId}
    returning g.granted, s.used, g.allowed, g.is_open, s.disabled_at`)
  if (!booked) throw new Error('the row was locked, and is not there')
  return booked
}

/** Returns no more than was booked; expired buckets are already gone. Runs under the lock of the app's row. */
export const unbookUsage = (db: Db, appId: AppId, given: readonly { second: Date; count: number }[]) =>
  db.query(sql`
    with back as materialized (
      select u.second, least(u.count, r.count) as count
      from sending_usage u join jsonb_to_recordset(${rows(given)}::jsonb) as r(second timestamptz, count bigint)
        on u.second = r.second
      where u.app_id = ${appId}
    ), taken as (
      update sending_usage u set count = u.count - b.count
      from back b
      where u.app_id = ${appId} and u.second = b.second
    )
    update app_sending s set used = s.used - b.count
    from (select coalesce(sum(count), 0)::bigint as count from back) b
    where s.app_id = ${appId}`)

/** Makes everything sent before stop counting. Runs under the lock of the app's row. */
export const clearUsage = (db: Db, appId: AppId, { enabledAt, countedAt }: { enabledAt: Date; countedAt: Date }) =>
  db.query(sql`
    with dropped as (
      delete from sending_usage where app_id = ${appId}
    )
    update app_sending set used = 0, counted_at = ${countedAt}, disabled_at = null, enabled_at = ${enabledAt}
    where app_id = ${appId}`)

export const setPaused = (db: Db, appId: AppId, pausedAt: Date | null) =>
  db.query(sql`update app_sending set paused_at = ${pausedAt} where app_id = ${appId}`)

export const upsertSettings = (db: Db, appId: AppId, it: DeliverySettings, now: Date) =>
  db.query(sql`
    insert into delivery_settings (app_id, quiet_hours, frequency_caps, throttle_per_minute, retention_days, limit_factor,
      updated_at)
    select a.id, ${it.quietHours && JSON.stringify(it.quietHours)}::jsonb, ${JSON.stringify(it.frequencyCaps)}::jsonb,
      ${it.throttlePerMinute}::integer, ${it.retentionDays}::integer, ${it.limitFactor}::integer, ${now}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict (app_id) do update set quiet_hours = excluded.quiet_hours, frequency_caps = excluded.frequency_caps,
      throttle_per_minute = excluded.throttle_per_minute, retention_days = excluded.retention_days,
      limit_factor = excluded.limit_factor, updated_at = excluded.updated_at`)

/** Whether the settings that hold deliveries are still as they were read. They stay so until the transaction ends. */
export async function areHoldsUnchanged(
  db: Db,
  appId: AppId,
  { quietHours, throttlePerMinute }: Pick<DeliverySettings, 'quietHours' | 'throttlePerMinute'>,
): Promise<boolean> {
  // An app that sets them later has not held anything that would have to be released.
  if (quietHours === null && throttlePerMinute === null) return true
  const found = await db.query(sql`
    select 1 from delivery_settings d
    where d.app_id = ${appId} and d.quiet_hours is not distinct from ${quietHours && JSON.stringify(quietHours)}::jsonb
      and d.throttle_per_minute is not distinct from ${throttlePerMinute}::integer
    for share`)
  return found.length > 0
}

export type SendingRow = HoldTimes & {
  discardBefore: Date | null
  disabledAt: Date | null
  enabledAt: Date | null
} & { [Name in keyof DeliverySettings]: DeliverySettings[Name] | null }

/** Undefined when there is no such app. */
export async function findSending(db: Db, appId: AppId): Promise<SendingRow | undefined> {
  const [found] = await db.query<SendingRow>(sql`
    select v.restored_at, v.paused_at as server_paused_at, v.discard_before, s.paused_at, s.disabled_at, s.enabled_at,
      d.quiet_hours, d.frequency_caps, d.throttle_per_minute, d.retention_days, d.limit_factor
    from apps a
    left join app_sending s on s.app_id = ${appId}
    left join delivery_settings d on d.app_id = ${appId}
    cross join server_sending v
    where a.id = ${appId}`)
  return found
}

export type UsageRow = { used: number; allowed: number; roomAfter: Date | null }

/**
 * What the app has used and may use. `roomAfter` is the bucket after whose expiry less than half of that is used; null
 * if the app may send nothing.
 */
export async function findUsage(db: Db, appId: AppId, agedUntil: Date): Promise<UsageRow> {
  const [found] = await db.query<UsageRow>(sql`
    with limits as materialized (
      select ${allowedSql(appId)} as allowed
    ), live as materialized (
      select u.second, u.count, sum(u.count) over (order by u.second desc) - u.count as later
      from sending_usage u
      where u.app_id = ${appId} and u.second > ${agedUntil}
    )
    select l.allowed, coalesce((select sum(w.count) from live w), 0)::bigint as used,
      (select min(w.second) from live w where w.later * 2 < l.allowed) as room_after
    from limits l`)
  if (!found) throw new Error('nothing was counted')
  return found
}

// All apps

export type ServerSending = {
  pausedAt: Date | null
  restoredAt: Date | null
  discardBefore: Date | null
  identity: Record<string, unknown> | null
}

export async function findServerSending(db: Db): Promise<ServerSending> {
  const [found] = await db.query<ServerSending>(sql`
    select paused_at, restored_at, discard_before, identity from server_sending`)
  if (!found) throw new Error('server_sending has no row')
  return found
}

/** Held until the transaction ends. */
export async function lockServerSending(db: Db): Promise<ServerSending> {
  const [found] = await db.query<ServerSending>(sql`
    select paused_at, restored_at, discard_before, identity from server_sending for update`)
  if (!found) throw new Error('server_sending has no row')
  return found
}

export const updateServerSending = (db: Db, it: ServerSending) =>
  db.query(sql`
    update server_sending
    set paused_at = ${it.pausedAt}, restored_at = ${it.restoredAt}, discard_before = ${it.discardBefore},
      identity = ${it.identity && JSON.stringify(it.identity)}::jsonb`)

export type HeldApp = { appId: AppId; pausedAt: Date | null; disabledAt: Date | null }

export const findHeldAppsAcrossApps = (db: Db) =>
  db.query<HeldApp>(sql`
    select app_id, paused_at, disabled_at
    from app_sending
    where paused_at is not null or disabled_at is not null
    order by app_id`)
