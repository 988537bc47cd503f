// All SQL of users, aliases, subscriptions and what hangs on them. Every statement carries one app's rows.

import { randomInt } from 'node:crypto'
import type { AppId, NewId, SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { Alias } from './aliases/identity.ts'
import type { FeedKind } from './change-feed/change-feed.ts'
import {
  activityRow,
  freshSubscriptionRow,
  freshUserRow,
  type LoadedUser,
  subscriptionRow,
  type UserRow,
  userOf,
} from './rows.ts'
import type { Subscription } from './subscriptions/subscription.ts'
import type { NewPurchases, OwnerRef, User } from './working-set.ts'

export type OwnedAlias = Alias & { userId: UserId }
/** By how much the counts of a user change. */
export type UserCountChange = { id: UserId; aliases: number; subscriptions: number }
/** Subscriptions of an app: all, those that can be reached, and those that can be reached by push. */
export type PlayerCounts = { players: number; subscribed: number; messageable: number }

// ---- finding

/** References as one jsonb parameter; `n` is the place in the list. */
const refRows = (refs: readonly OwnerRef[]) =>
  rows(
    refs.map((ref, n) => {
      if ('id' in ref) return { n, id: ref.id }
      if ('label' in ref) return { n, label: ref.label, value: ref.value }
      if ('subscriptionId' in ref) return { n, subscription_id: ref.subscriptionId }
      if ('installId' in ref) return { n, install_id: ref.installId }
      return { n, type: ref.type, token_hash: ref.tokenHash }
    }),
  )

/**
 * Whom a row of `r` names, by `r.id` or else by the alias `r.label` and `r.value`; null when there is nobody. A part of
 * other statements too, so that what they write for a user is written for one that is there.
 * Scalar subqueries, on purpose: as joins the planner may turn them into a scan of the whole table for each batch; as
 * these they stay index probes.
 */
export const userIdOfRow = (appId: AppId) => sql`
  case
    when r.id is not null then (select u.id from users u where u.app_id = ${appId} and u.id = r.id)
    else (select a.user_id from aliases a where a.app_id = ${appId} and a.label = r.label and a.value = r.value)
  end`

/** Whom each reference points at, as a column of `r`. */
const pointsAt = (appId: AppId) => sql`
  case
    when r.id is not null or r.label is not null then ${userIdOfRow(appId)}
    when r.subscription_id is not null then
      (select s.user_id from subscriptions s where s.app_id = ${appId} and s.id = r.subscription_id)
    when r.install_id is not null then
      (select s.user_id from subscriptions s where s.app_id = ${appId} and s.install_id = r.install_id)
    else (select s.user_id from subscriptions s
          where s.app_id = ${appId} and s.type = r.type and s.token_hash = decode(r.token_hash, 'hex'))
  end`

/** References as rows, each with whom it points at. `offset 0` keeps the planner from turning the probes into joins. */
const pointedAt = (appId: AppId, refs: readonly OwnerRef[]) => sql`
  select r.n, ${pointsAt(appId)} as user_id
  from jsonb_to_recordset(${refRows(refs)}::jsonb)
    as r(n integer, id uuid, label text, value text, subscription_id uuid, install_id uuid, type text, token_hash text)
  offset 0`

export type LockedUsers = {
  ids: UserId[]
  /** References that pointed at somebody before the lock. */
  pointing: Set<OwnerRef>
  /** What the app is watched for, but for events. */
  watched: Set<FeedKind>
}

/** Lock the users that the references point at, in the order of their ids. Who was deleted meanwhile is not locked. */
export async function lockReferencedUsers(db: Db, appId: AppId, refs: readonly OwnerRef[]): Promise<LockedUsers> {
  const found = await db.query<{ n: number | null; lockedId: UserId | null; watched: FeedKind | null }>(sql`
    with refs as materialized (${pointedAt(appId, refs)}),
    locked as materialized (
      select u.id from users u
      where u.app_id = ${appId} and u.id = any(array(select refs.user_id from refs where refs.user_id is not null))
      order by u.id
      for update
    )
    select refs.n, locked.id as locked_id, null as watched
    from refs left join locked on locked.id = refs.user_id
    where refs.user_id is not null
    union all
    select null, null, w.kind from watches w where w.app_id = ${appId} and w.name = ''`)
  return {
    ids: [...new Set(found.map(({ lockedId }) => lockedId).filter((id) => id !== null))],
    pointing: new Set(found.flatMap(({ n }) => (n === null ? [] : [refs[n] as OwnerRef]))),
    watched: new Set(found.flatMap(({ watched }) => watched ?? [])),
  }
}

/** Whom references point at, without locks. */
export async function findOwners(db: Db, appId: AppId, refs: readonly OwnerRef[]): Promise<(UserId | undefined)[]> {
  const found = await db.query<{ n: number; userId: UserId | null }>(pointedAt(appId, refs))
  const owners: (UserId | undefined)[] = new Array(refs.length).fill(undefined)
  for (const { n, userId } of found) owners[n] = userId ?? undefined
  return owners
}

export type IdentityRow = { userId: UserId; aliases: Record<string, string> | null }

/** The identities that references point at; undefined where there is nobody. */
export async function findIdentities(
  db: Db,
  appId: AppId,
  refs: readonly OwnerRef[],
): Promise<(IdentityRow | undefined)[]> {
  const found = await db.query<{ n: number } & IdentityRow>(sql`
    select t.n, t.user_id,
      (select jsonb_object_agg(o.label, o.value) from aliases o where o.app_id = ${appId} and o.user_id = t.user_id)
        as aliases
    from (${pointedAt(appId, refs)}) t
    where t.user_id is not null`)
  const identities: (IdentityRow | undefined)[] = new Array(refs.length).fill(undefined)
  for (const { n, userId, aliases } of found) identities[n] = { userId, aliases }
  return identities
}

/** Which subscriptions have these tokens (their hashes, in hex); those that nobody has are not there. */
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

/** A page of subscriptions, in an order that stays. */
export async function listSubscriptions(db: Db, appId: AppId, limit: number, offset: number) {
  const page = await db.query<{ id: SubscriptionId }>(sql`
    select s.id from subscriptions s
    where s.app_id = ${appId}
    order by s.id
    limit ${limit} offset ${offset}`)
  return page.map(({ id }) => id)
}

export async function sumPlayerCounts(db: Db, appIds: readonly AppId[]): Promise<Map<AppId, PlayerCounts>> {
  const sums = await db.query<PlayerCounts & { appId: AppId }>(sql`
    select c.app_id, sum(c.players)::bigint as players, sum(c.subscribed)::bigint as subscribed,
      sum(c.messageable)::bigint as messageable
    from player_counts c
    where c.app_id = any(${appIds}::uuid[])
    group by c.app_id`)
  const counted = new Map(sums.map(({ appId, ...counts }) => [appId, counts]))
  return new Map(appIds.map((id) => [id, counted.get(id) ?? { players: 0, subscribed: 0, messageable: 0 }]))
}

// ---- loading

export type LoadOptions = { subscriptions: boolean; purchases: boolean }

/**
 * A row of `u` with what it owns. Times come as text in ISO form, so that they pass through JSON unchanged.
 * Everything is a scalar subquery: a join could be planned as a scan of the app's whole table.
 */
const userObject = (appId: AppId, loading: LoadOptions) => sql`
    jsonb_build_object(
      'id', u.id, 'tags', u.tags, 'language', u.language, 'timezone_id', u.timezone_id, 'country', u.country,
      'lat', u.lat, 'long', u.long, 'ip', u.ip, 'test_user_name', u.test_user_name,
      'first_active', u.first_active, 'amount_spent', u.amount_spent::text, 'created_at', u.created_at,
      'activity', (
        select to_jsonb(t) from user_activity t where t.app_id = ${appId} and t.user_id = u.id),
      'aliases', (
        select jsonb_object_agg(a.label, a.value) from aliases a where a.app_id = ${appId} and a.user_id = u.id),
      'subscriptions', case when ${loading.subscriptions}::boolean then (
        select jsonb_agg(to_jsonb(s) || jsonb_build_object(
            'token_hash', encode(s.token_hash, 'hex'),
            'activity', (select to_jsonb(t) from subscription_activity t
                         where t.app_id = ${appId} and t.subscription_id = s.id))
          order by s.created_at, s.id)
        from subscriptions s
        where s.app_id = ${appId} and s.user_id = u.id) end,
      'purchases', case when ${loading.purchases}::boolean then (
        select jsonb_agg(jsonb_build_object('sku', p.sku, 'iso', p.iso, 'amount', p.amount, 'count', p.count)
          order by p.bought_at, p.position)
        from (
          select q.sku, q.iso, q.amount, q.count, q.bought_at, q.position from purchases q
          where q.app_id = ${appId} and q.user_id = u.id
          order by q.bought_at desc, q.position desc
          limit 100
        ) p) end
    )`

/**
 * The locked users with what they own and, seen at the same moment, which of the references that pointed at nobody
 * before the lock have come to point at somebody.
 */
export async function loadLockedUsers(
  db: Db,
  appId: AppId,
  ids: readonly UserId[],
  loading: LoadOptions,
  free: readonly OwnerRef[],
): Promise<{ users: User[]; taken: Set<OwnerRef> }> {
  const loaded = await db.query<{ user: LoadedUser | null; n: number | null }>(sql`
    select ${userObject(appId, loading)} as user, null::integer as n
    from users u
    where u.app_id = ${appId} and u.id = any(${ids}::uuid[])
    union all
    select null, t.n from (${pointedAt(appId, free)}) t
    where t.user_id is not null`)
  return {
    users: loaded.flatMap(({ user }) => (user ? [userOf(user)] : [])),
    taken: new Set(loaded.flatMap(({ n }) => (n === null ? [] : [free[n] as OwnerRef]))),
  }
}

/** The users that references point at, without locks. One statement, so that nobody moves between finding and loading. */
export async function loadReferencedUsers(
  db: Db,
  appId: AppId,
  refs: readonly OwnerRef[],
  loading: LoadOptions,
): Promise<(User | undefined)[]> {
  const loaded = await db.query<{ ns: number[]; user: LoadedUser }>(sql`
    select t.ns, (select ${userObject(appId, loading)} from users u where u.app_id = ${appId} and u.id = t.user_id) as user
    from (
      select p.user_id, array_agg(p.n) as ns from (${pointedAt(appId, refs)}) p
      where p.user_id is not null
      group by p.user_id
    ) t`)
  const users: (User | undefined)[] = new Array(refs.length).fill(undefined)
  for (const { ns, user } of loaded) {
    const found = userOf(user)
    for (const n of ns) users[n] = found
  }
  return users
}

// ---- writing. Rows come sorted by key, so that two batches that race for the same keys wait and do not deadlock.

const sortedAliases = <Row extends Alias>(list: Row[]) =>
  list.toSorted((a, b) => compare(a.label, b.label) || compare(a.value, b.value))
const sortedSubscriptions = (list: Subscription[]) =>
  list.toSorted((a, b) => compare(a.type, b.type) || compare(a.tokenHash ?? '', b.tokenHash ?? ''))
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

export const insertUsers = (db: Db, appId: AppId, list: UserRow[], now: Date) =>
  db.query(sql`
  insert into users (app_id, id, tags, language, timezone_id, country, lat, long, ip, test_user_name,
    first_active, amount_spent, created_at, updated_at)
  select a.id, r.id, r.tags, r.language, r.timezone_id, r.country, r.lat, r.long, r.ip, r.test_user_name,
    r.first_active, r.amount_spent, ${now}::timestamptz, ${now}::timestamptz
  from apps a cross join jsonb_to_recordset(${rows(list)}::jsonb)
    as r(id uuid, tags jsonb, language text, timezone_id text, country text, lat float8, long float8, ip text,
      test_user_name text, first_active timestamptz, amount_spent numeric)
  where a.id = ${appId}`)

export const updateUsers = (db: Db, appId: AppId, list: UserRow[], now: Date) =>
  db.query(sql`
  update users u
  set tags = r.tags, language = r.language, timezone_id = r.timezone_id, country = r.country, lat = r.lat,
    long = r.long, ip = r.ip, test_user_name = r.test_user_name, first_active = r.first_active,
    amount_spent = r.amount_spent, updated_at = ${now}::timestamptz
  from jsonb_to_recordset(${rows(list)}::jsonb)
    as r(id uuid, tags jsonb, language text, timezone_id text, country text, lat float8, long float8, ip text,
      test_user_name text, first_active timestamptz, amount_spent numeric)
  where u.app_id = ${appId} and u.id = r.id`)

/** The counts stand in the row for the sake of its check constraints: the limits hold whatever the code above believes. */
export const adjustUserCounts = (db: Db, appId: AppId, list: UserCountChange[], now: Date) =>
  db.query(sql`
  update users u
  set alias_count = u.alias_count + r.aliases, subscription_count = u.subscription_count + r.subscriptions,
    updated_at = ${now}::timestamptz
  from jsonb_to_recordset(${rows(list)}::jsonb) as r(id uuid, aliases smallint, subscriptions smallint)
  where u.app_id = ${appId} and u.id = r.id`)

export const deleteUsers = (db: Db, appId: AppId, ids: UserId[]) =>
  db.query(sql`delete from users u where u.app_id = ${appId} and u.id = any(${ids}::uuid[])`)

export const insertAliases = (db: Db, appId: AppId, list: OwnedAlias[]) =>
  db.query(sql`
  insert into aliases (app_id, label, value, user_id)
  select a.id, r.label, r.value, r.user_id
  from apps a cross join jsonb_to_recordset(${rows(
    sortedAliases(list).map(({ label, value, userId }) => ({ label, value, user_id: userId })),
  )}::jsonb) as r(label text, value text, user_id uuid)
  where a.id = ${appId}`)

export const deleteAliases = (db: Db, appId: AppId, list: Alias[]) =>
  db.query(sql`
  delete from aliases d
  using jsonb_to_recordset(${rows(list)}::jsonb) as r(label text, value text)
  where d.app_id = ${appId} and d.label = r.label and d.value = r.value`)

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

/** Before another subscription gets the install: one statement that moved it could meet both in either order. */
export const releaseInstalls = (db: Db, appId: AppId, ids: SubscriptionId[]) =>
  db.query(sql`
  update subscriptions s set install_id = null where s.app_id = ${appId} and s.id = any(${ids}::uuid[])`)

export const deleteSubscriptions = (db: Db, appId: AppId, ids: SubscriptionId[]) =>
  db.query(sql`delete from subscriptions s where s.app_id = ${appId} and s.id = any(${ids}::uuid[])`)

/** Writers that pick different slots do not wait for each other. */
const COUNT_SLOTS = 8

/** The last write of a transaction: whoever waits for this row then holds nothing that its holder may wait for. */
export const adjustPlayerCounts = (db: Db, appId: AppId, by: PlayerCounts) =>
  db.query(sql`
  insert into player_counts (app_id, slot, players, subscribed, messageable)
  select a.id, ${randomInt(COUNT_SLOTS)}::smallint, ${by.players}::bigint, ${by.subscribed}::bigint, ${by.messageable}::bigint
  from apps a
  where a.id = ${appId}
  on conflict (app_id, slot) do update
  set players = player_counts.players + excluded.players, subscribed = player_counts.subscribed + excluded.subscribed,
    messageable = player_counts.messageable + excluded.messageable`)

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

/**
 * Insert new users with their aliases and subscriptions, but for those of which something is known already: their ids
 * come back. One statement; what it reads, it reads first. PostgreSQL runs the inserts from the last to the first: aliases
 * stand last so that they are claimed before tokens, and the app's counts first so that they are locked after all else,
 * as in all other changes. In opposite orders the two would deadlock. Where changes are watched it writes the news too,
 * under the id of the user: there is one beginning for each.
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
        as r(id uuid, tags jsonb, language text, timezone_id text, country text, lat float8, long float8, ip text,
          test_user_name text, first_active timestamptz, amount_spent numeric, alias_count smallint,
          subscription_count smallint, subscribed smallint, messageable smallint, at timestamptz)
      where r.id not in (select known.user_id from known)
    ), news as materialized (
      select r.id, r.at
      from watches w cross join user_rows r
      where w.app_id = ${appId} and w.kind = 'change' and w.name = ''
    ), counts as (
      insert into player_counts (app_id, slot, players, subscribed, messageable)
      select a.id, ${randomInt(COUNT_SLOTS)}::smallint, sum(r.subscription_count), sum(r.subscribed), sum(r.messageable)
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
      insert into users (app_id, id, tags, language, timezone_id, country, lat, long, ip, test_user_name,
        first_active, amount_spent, alias_count, subscription_count, created_at, updated_at)
      select a.id, r.id, r.tags, r.language, r.timezone_id, r.country, r.lat, r.long, r.ip, r.test_user_name,
        coalesce(r.first_active, r.at), coalesce(r.amount_spent, 0), r.alias_count, r.subscription_count, r.at, r.at
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
