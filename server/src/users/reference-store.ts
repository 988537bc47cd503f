// Finds the users that references point at. A reference is anything by which a request can name a user.

import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { FeedKind } from './change-feed/feed.ts'
import type { OwnerRef } from './user.ts'

/** References as one jsonb parameter; `n` is the index in the list. */
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
 * The user that a row of `r` names, by `r.id` or else by the alias `r.label` and `r.value`; null when there is none.
 * Other statements embed this too, so that they write only for users that exist. Scalar subqueries on purpose: the
 * planner may turn joins into a scan of the whole table for each batch, while these stay index probes.
 */
export const userIdOfRow = (appId: AppId) => sql`
  case
    when r.id is not null then (select u.id from users u where u.app_id = ${appId} and u.id = r.id)
    else (select a.user_id from aliases a where a.app_id = ${appId} and a.label = r.label and a.value = r.value)
  end`

/** The user that each reference points at, as a column of `r`. */
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

/** References as rows, each with its user. `offset 0` keeps the planner from turning the probes into joins. */
export const referencedUsers = (appId: AppId, refs: readonly OwnerRef[]) => sql`
  select r.n, ${pointsAt(appId)} as user_id
  from jsonb_to_recordset(${refRows(refs)}::jsonb)
    as r(n integer, id uuid, label text, value text, subscription_id uuid, install_id uuid, type text, token_hash text)
  offset 0`

export type LockedUsers = {
  ids: UserId[]
  /** References that pointed at a user before the lock. */
  pointing: Set<OwnerRef>
  /** What the app is watched for, except events. */
  watched: Set<FeedKind>
}

/**
 * Locks the users that the references point at, in the order of their ids. Users deleted in the meantime are not
 * locked.
 */
export async function lockReferencedUsers(db: Db, appId: AppId, refs: readonly OwnerRef[]): Promise<LockedUsers> {
  const found = await db.query<{ n: number | null; lockedId: UserId | null; watched: FeedKind | null }>(sql`
    with refs as materialized (${referencedUsers(appId, refs)}),
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

/** The users that references point at, without locks. */
export async function findOwners(db: Db, appId: AppId, refs: readonly OwnerRef[]): Promise<(UserId | undefined)[]> {
  const found = await db.query<{ n: number; userId: UserId | null }>(referencedUsers(appId, refs))
  const owners: (UserId | undefined)[] = new Array(refs.length).fill(undefined)
  for (const { n, userId } of found) owners[n] = userId ?? undefined
  return owners
}

export type IdentityRow = { userId: UserId; aliases: Record<string, string> | null }

/** The identities that references point at; undefined where there is no user. */
export async function findIdentities(
  db: Db,
  appId: AppId,
  refs: readonly OwnerRef[],
): Promise<(IdentityRow | undefined)[]> {
  const found = await db.query<{ n: number } & IdentityRow>(sql`
    select t.n, t.user_id,
      (select jsonb_object_agg(o.label, o.value) from aliases o where o.app_id = ${appId} and o.user_id = t.user_id)
        as aliases
    from (${referencedUsers(appId, refs)}) t
    where t.user_id is not null`)
  const identities: (IdentityRow | undefined)[] = new Array(refs.length).fill(undefined)
  for (const { n, userId, aliases } of found) identities[n] = { userId, aliases }
  return identities
}
