// All SQL on the tokens of live activities.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'

/**
 * `start`: a token that starts activities of the kind with this name. `update`: a token that updates the running
 * activity with this id.
 */
export type ActivityTokenName = { purpose: 'start' | 'update'; name: string }
export type ActivityTokenKey = ActivityTokenName & { subscriptionId: SubscriptionId }
export type ActivityToken = ActivityTokenKey & { token: string }

const tokenRow = ({ purpose, name, subscriptionId, token }: ActivityToken) => ({
  purpose,
  name,
  subscription_id: subscriptionId,
  token,
})

/** Returns those of the subscriptions that exist; tokens of others are not written. */
export async function upsertTokens(
  db: Db,
  appId: AppId,
  tokens: readonly ActivityToken[],
  now: Date,
): Promise<Set<SubscriptionId>> {
  const written = await db.query<{ subscriptionId: SubscriptionId }>(sql`
    insert into live_activity_tokens (app_id, purpose, name, subscription_id, token, updated_at)
    select a.id, r.purpose, r.name, r.subscription_id, r.token, ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows(tokens.map(tokenRow))}::jsonb)
      as r(purpose text, name text, subscription_id uuid, token text)
    where a.id = ${appId}
      and exists (select 1 from subscriptions s where s.app_id = ${appId} and s.id = r.subscription_id)
    order by r.purpose, r.name, r.subscription_id
    on conflict (app_id, purpose, name, subscription_id)
    do update set token = excluded.token, updated_at = excluded.updated_at
    returning subscription_id`)
  return new Set(written.map(({ subscriptionId }) => subscriptionId))
}

/** Finds the oldest tokens of each subscription beyond its newest `most`. */
export const findSurplusTokens = (db: Db, appId: AppId, ids: readonly SubscriptionId[], most: number) =>
  db.query<ActivityToken>(sql`
    select t.purpose, t.name, t.subscription_id, t.token
    from (
      select t.purpose, t.name, t.subscription_id, t.token,
        row_number() over (partition by t.subscription_id order by t.updated_at desc, t.purpose, t.name) as place
      from live_activity_tokens t
      where t.app_id = ${appId} and t.subscription_id = any(${ids}::uuid[])) t
    where t.place > ${most}`)

/** Deletes only tokens that have not been replaced since they were read. */
export const deleteTokens = (db: Db, appId: AppId, tokens: readonly ActivityToken[]) =>
  db.query(sql`
    delete from live_activity_tokens t
    using jsonb_to_recordset(${rows(tokens.map(tokenRow))}::jsonb)
      as r(purpose text, name text, subscription_id uuid, token text)
    where t.app_id = ${appId} and t.purpose = r.purpose and t.name = r.name and t.subscription_id = r.subscription_id
      and t.token = r.token`)

export const deleteToken = (db: Db, appId: AppId, { purpose, name, subscriptionId }: ActivityTokenKey) =>
  db.query(sql`
    delete from live_activity_tokens
    where app_id = ${appId} and purpose = ${purpose} and name = ${name} and subscription_id = ${subscriptionId}`)

/** Returns the tokens of these subscriptions; those without a token are missing from the map. */
export async function findTokens(
  db: Db,
  appId: AppId,
  { purpose, name }: ActivityTokenName,
  ids: readonly SubscriptionId[],
): Promise<Map<SubscriptionId, string>> {
  const found = await db.query<{ subscriptionId: SubscriptionId; token: string }>(sql`
    select t.subscription_id, t.token from live_activity_tokens t
    where t.app_id = ${appId} and t.purpose = ${purpose} and t.name = ${name} and t.subscription_id = any(${ids}::uuid[])`)
  return new Map(found.map(({ subscriptionId, token }) => [subscriptionId, token]))
}

/** In the order of their ids, after the given one. */
export async function findTokenHolders(
  db: Db,
  appId: AppId,
  { purpose, name }: ActivityTokenName,
  limit: number,
  after?: SubscriptionId,
): Promise<SubscriptionId[]> {
  const found = await db.query<{ subscriptionId: SubscriptionId }>(sql`
    select t.subscription_id from live_activity_tokens t
    where t.app_id = ${appId} and t.purpose = ${purpose} and t.name = ${name}
      and (${after ?? null}::uuid is null or t.subscription_id > ${after ?? null}::uuid)
    order by t.subscription_id
    limit ${limit}`)
  return found.map(({ subscriptionId }) => subscriptionId)
}

/**
 * Deletes at most `limit` tokens that were last renewed before this time. Returns how many; fewer than `limit` means
 * that none are left.
 */
export async function deleteTokensBefore(
  db: Db,
  appId: AppId,
  purpose: ActivityTokenName['purpose'],
  before: Date,
  limit: number,
): Promise<number> {
  const deleted = await db.query(sql`
    delete from live_activity_tokens
    where app_id = ${appId} and ctid = any(array(
      select ctid from live_activity_tokens
      where app_id = ${appId} and purpose = ${purpose} and updated_at < ${before}
      order by updated_at
      limit ${limit}
      for update skip locked))
    returning name`)
  return deleted.length
}
