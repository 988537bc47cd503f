// Finds out which types of push subscription can be reached. It reads few rows, and serves only the warnings.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { Submission } from './submission.ts'

/**
 * Returns undefined for apps with `most` subscriptions or more, so that large apps are never scanned. `isReachable` is
 * a condition on a row `s` of subscriptions.
 */
export async function findSubscribedTypes(
  db: Db,
  appId: AppId,
  isReachable: Sql,
  most: number,
): Promise<Set<string> | undefined> {
  const found = await db.query<{ type: string; isReachable: boolean }>(sql`
    select s.type, ${isReachable} as is_reachable from subscriptions s where s.app_id = ${appId} limit ${most}`)
  if (found.length >= most) return undefined
  return new Set(found.filter((it) => it.isReachable).map(({ type }) => type))
}

/** The same for named targets. `user` finds the user whom a row `r` refers to. */
export async function findSubscribedTypesOfTargets(
  db: Db,
  appId: AppId,
  user: Sql,
  isReachable: Sql,
  targets: NonNullable<Submission['targets']>,
): Promise<Set<string>> {
  const named = targets.map((it) => ('subscriptionId' in it ? { subscription_id: it.subscriptionId } : it))
  const found = await db.query<{ type: string }>(sql`
    with named as materialized (
      select r.subscription_id, case when r.subscription_id is null then ${user} end as user_id
      from jsonb_to_recordset(${JSON.stringify(named)}::jsonb) as r(id uuid, label text, value text, subscription_id uuid)
    )
    select s.type from named n cross join lateral (
      select s.type from subscriptions s
      where s.app_id = ${appId} and s.id = n.subscription_id and ${isReachable} offset 0) s
    union
    select s.type from named n cross join lateral (
      select s.type from subscriptions s
      where s.app_id = ${appId} and s.user_id = n.user_id and ${isReachable} offset 0) s`)
  return new Set(found.map(({ type }) => type))
}
