import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { sortedSubscriptions } from '../row-order.ts'
import { activityRow, subscriptionRow } from '../rows.ts'
import type { Subscription } from './subscription.ts'

/** Maps the hashes of tokens (in hex) to their subscriptions; tokens without a subscription are left out. */
export async function findByTokens(
  db: Db,
  appId: AppId,
  type: string,
  hashes: readonly string[],
): Promise<Map<string, SubscriptionId>> {
  const found = await db.query<{ hash: string; id: SubscriptionId | null }>(sql`
    select r.hash,
      (select s.id from subscriptions s
       where s.app_id = ${appId} and s.type = ${type} and s.token_hash = decode(r.hash, 'hex')) as id
    from unnest(${hashes}::text[]) as r(hash)`)
  return new Map(found.flatMap(({ hash, id }) => (id === null ? [] : [[hash, id] as const])))
}

/** A page of subscriptions, in a stable order. */
export async function listSubscriptions(db: Db, appId: AppId, limit: number, offset: number) {
  const page = await db.query<{ id: SubscriptionId }>(sql`
    select s.id from subscriptions s
    where s.app_id = ${appId}
    order by s.id
    limit ${limit} offset ${offset}`)
  return page.map(({ id }) => id)
}

export const insertSubscriptions = (db: Db, appId: AppId, list: Subscription[]) =>
  db.query(sql`
  insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, enabled, notification_types,
    sdk, device_model, device_os, rooted, test_type, app_version, net_type, carrier, web_auth, web_p256, language,
    timezone_seconds, ad_id, country, lat, long, badge_count, install_id, created_at, updated_at)
  select a.id, r.id, r.user_id, r.type, r.type_spelling, r.token, decode(r.token_hash, 'hex'), r.enabled,
    r.notification_types, r.sdk, r.device_model, r.device_os, r.rooted, r.test_type, r.app_version, r.net_type,
    r.carrier, r.web_auth, r.web_p256, r.language, r.timezone_seconds, r.ad_id, r.country, r.lat, r.long,
    r.badge_count, r.install_id, r.created_at, r.updated_at
  from apps a cross join jsonb_to_recordset(${rows(sortedSubscriptions(list).map(subscriptionRow))}::jsonb)
    as r(id uuid, user_id uuid, type text, type_spelling text, token text, token_hash text, enabled boolean,
      notification_types integer, sdk text, device_model text, device_os text, rooted boolean, test_type integer,
      app_version text, net_type integer, carrier text, web_auth text, web_p256 text, language text,
      timezone_seconds integer, ad_id text, country text, lat float8, long float8, badge_count integer,
      install_id uuid, created_at timestamptz, updated_at timestamptz)
  where a.id = ${appId}`)

export const updateSubscriptions = (db: Db, appId: AppId, list: Subscription[]) =>
  db.query(sql`
  update subscriptions s
  set user_id = r.user_id, token = r.token, token_hash = decode(r.token_hash, 'hex'), enabled = r.enabled,
    notification_types = r.notification_types, sdk = r.sdk, device_model = r.device_model, device_os = r.device_os,
    rooted = r.rooted, test_type = r.test_type, app_version = r.app_version, net_type = r.net_type,
    carrier = r.carrier, web_auth = r.web_auth, web_p256 = r.web_p256, language = r.language,
    timezone_seconds = r.timezone_seconds, ad_id = r.ad_id, country = r.country, lat = r.lat, long = r.long,
    badge_count = r.badge_count, install_id = r.install_id, updated_at = r.updated_at
  from jsonb_to_recordset(${rows(sortedSubscriptions(list).map(subscriptionRow))}::jsonb)
    as r(id uuid, user_id uuid, token text, token_hash text, enabled boolean, notification_types integer, sdk text,
      device_model text, device_os text, rooted boolean, test_type integer, app_version text, net_type integer,
      carrier text, web_auth text, web_p256 text, language text, timezone_seconds integer, ad_id text, country text,
      lat float8, long float8, badge_count integer, install_id uuid, updated_at timestamptz)
  where s.app_id = ${appId} and s.id = r.id`)

/**
 * Runs before another subscription gets the install: a single statement that moved it could reach the two rows in
 * either order and violate the unique constraint.
 */
export const releaseInstalls = (db: Db, appId: AppId, ids: SubscriptionId[]) =>
  db.query(sql`
  update subscriptions s set install_id = null where s.app_id = ${appId} and s.id = any(${ids}::uuid[])`)

export const deleteSubscriptions = (db: Db, appId: AppId, ids: SubscriptionId[]) =>
  db.query(sql`delete from subscriptions s where s.app_id = ${appId} and s.id = any(${ids}::uuid[])`)

export const upsertSubscriptionActivity = (db: Db, appId: AppId, list: Subscription[]) =>
  db.query(sql`
  insert into subscription_activity (app_id, subscription_id, last_active, session_count, session_time)
  select a.id, r.id, r.last_active, r.session_count, r.session_time
  from apps a cross join jsonb_to_recordset(${rows(list.map((it) => activityRow(it.id, it)))}::jsonb)
    as r(id uuid, last_active timestamptz, session_count bigint, session_time bigint)
  where a.id = ${appId}
  on conflict (app_id, subscription_id) do update
  set last_active = excluded.last_active, session_count = excluded.session_count,
    session_time = excluded.session_time`)
