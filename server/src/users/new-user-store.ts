import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import { pickCountSlot } from './count-store.ts'
import { USER_COLUMN_NAMES, USER_COLUMN_TYPES } from './properties/columns.ts'
import { sortedAliases, sortedSubscriptions } from './row-order.ts'
import { freshSubscriptionRow, freshUserRow } from './rows.ts'
import type { User } from './user.ts'

/**
 * Inserts new users with their aliases and subscriptions. Skips those with an alias, token or install that already
 * exists, and returns their ids. It is one statement whose reads come first. PostgreSQL runs the inserts from the last
 * to the first: aliases stand last so that they are claimed before tokens, and the app's counts first so that they are
 * locked after everything else, as in all other changes. In opposite orders the two would deadlock. If changes are
 * watched, it also writes a feed entry for each user, under the user's id, because a user is created only once.
 */
export async function insertNewUsers(
  db: Db,
  appId: AppId,
  list: User[],
): Promise<{ known: Set<UserId>; isNews: boolean }> {
  const aliases = sortedAliases(
    list.flatMap(({ id, aliases }) => [...aliases].map(([label, value]) => ({ user_id: id, label, value }))),
  )
  const subscriptions = sortedSubscriptions(list.flatMap(({ subscriptions }) => [...subscriptions.values()]))
  const found = await db.query<{ userId: UserId | null }>(sql`
    with alias_rows as materialized (
      select r.user_id, r.label, r.value,
        (select k.user_id from aliases k where k.app_id = ${appId} and k.label = r.label and k.value = r.value) as owner
      from jsonb_to_recordset(${rows(aliases)}::jsonb) as r(user_id uuid, label text, value text)
    ), subscription_rows as materialized (
      select r.*,
        coalesce(
          (select k.user_id from subscriptions k
           where k.app_id = ${appId} and k.type = r.type and k.token_hash = decode(r.token_hash, 'hex')),
          (select k.user_id from subscriptions k
           where k.app_id = ${appId} and k.install_id = r.install_id)) as owner
      from jsonb_to_recordset(${rows(subscriptions.map(freshSubscriptionRow))}::jsonb)
        as r(id uuid, user_id uuid, type text, type_spelling text, token text, token_hash text, enabled boolean,
          notification_types integer, sdk text, device_model text, device_os text, rooted boolean, test_type integer,
          app_version text, net_type integer, carrier text, web_auth text, web_p256 text, install_id uuid, at timestamptz)
    ), known as materialized (
      select r.user_id from alias_rows r where r.owner is not null
      union
      select r.user_id from subscription_rows r where r.owner is not null
    ), user_rows as materialized (
      select r.*
      from jsonb_to_recordset(${rows(list.map(freshUserRow))}::jsonb)
        as r(id uuid, tags jsonb, ${USER_COLUMN_TYPES}, first_active timestamptz, amount_spent numeric,
          alias_count smallint, subscription_count smallint, subscribed smallint, messageable smallint, at timestamptz)
      where r.id not in (select known.user_id from known)
    ), news as materialized (
      select r.id, r.at
      from watches w cross join user_rows r
      where w.app_id = ${appId} and w.kind = 'change' and w.name = ''
    ), counts as (
      insert into player_counts (app_id, slot, players, subscribed, messageable)
      select a.id, ${pickCountSlot()}::smallint, sum(r.subscription_count), sum(r.subscribed), sum(r.messageable)
      from apps a cross join user_rows r
      where a.id = ${appId}
      group by a.id
      having sum(r.subscription_count) > 0
      on conflict (app_id, slot) do update
      set players = player_counts.players + excluded.players,
        subscribed = player_counts.subscribed + excluded.subscribed,
        messageable = player_counts.messageable + excluded.messageable
    ), noted as (
      insert into user_news (app_id, id, user_id, kind, at)
      select a.id, n.id, n.id, 'change', n.at
      from apps a cross join news n
      where a.id = ${appId}
    ), fresh_users as (
      insert into users (app_id, id, tags, ${USER_COLUMN_NAMES}, first_active, amount_spent, alias_count,
        subscription_count, created_at, updated_at)
      select a.id, r.id, r.tags, ${USER_COLUMN_NAMES}, coalesce(r.first_active, r.at), coalesce(r.amount_spent, 0), r.alias_count, r.subscription_count, r.at, r.at
      from apps a cross join user_rows r
      where a.id = ${appId}
    ), fresh_subscriptions as (
      insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, enabled,
        notification_types, sdk, device_model, device_os, rooted, test_type, app_version, net_type, carrier, web_auth,
        web_p256, install_id, created_at, updated_at)
      select a.id, r.id, r.user_id, r.type, r.type_spelling, r.token, decode(r.token_hash, 'hex'), r.enabled,
        r.notification_types, r.sdk, r.device_model, r.device_os, r.rooted, r.test_type, r.app_version, r.net_type,
        r.carrier, r.web_auth, r.web_p256, r.install_id, r.at, r.at
      from apps a cross join subscription_rows r
      where a.id = ${appId} and r.user_id not in (select known.user_id from known)
    ), fresh_aliases as (
      insert into aliases (app_id, label, value, user_id)
      select a.id, r.label, r.value, r.user_id
      from apps a cross join alias_rows r
      where a.id = ${appId} and r.user_id not in (select known.user_id from known)
    )
    select known.user_id from known
    union all
    select null where exists (select 1 from news)`)
  return {
    known: new Set(found.flatMap(({ userId }) => userId ?? [])),
    isNews: found.some(({ userId }) => userId === null),
  }
}
