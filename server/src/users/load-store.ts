// Loads users with what they own.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { referencedUsers } from './reference-store.ts'
import { type LoadedUser, userOf } from './rows.ts'
import type { OwnerRef, User } from './user.ts'

export type LoadOptions = { subscriptions: boolean; purchases: boolean }

/**
 * A row of `u` with what it owns. Times are ISO text, so that they pass through JSON unchanged. Everything is a scalar
 * subquery: a join could be planned as a scan of the app's whole table.
 */
const userObject = (appId: AppId, loading: LoadOptions) => sql`
    to_jsonb(u) || jsonb_build_object(
      'amount_spent', u.amount_spent::text,
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
 * The locked users with what they own and, seen at the same moment, those of the references that pointed at nobody
 * before the lock and point at a user now.
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
    select null, t.n from (${referencedUsers(appId, free)}) t
    where t.user_id is not null`)
  return {
    users: loaded.flatMap(({ user }) => (user ? [userOf(user)] : [])),
    taken: new Set(loaded.flatMap(({ n }) => (n === null ? [] : [free[n] as OwnerRef]))),
  }
}

/**
 * The users that references point at, without locks. One statement, so that nothing moves between finding and loading.
 */
export async function loadReferencedUsers(
  db: Db,
  appId: AppId,
  refs: readonly OwnerRef[],
  loading: LoadOptions,
): Promise<(User | undefined)[]> {
  const loaded = await db.query<{ ns: number[]; user: LoadedUser }>(sql`
    select t.ns, (select ${userObject(appId, loading)} from users u where u.app_id = ${appId} and u.id = t.user_id) as user
    from (
      select p.user_id, array_agg(p.n) as ns from (${referencedUsers(appId, refs)}) p
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
