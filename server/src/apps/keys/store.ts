// All SQL on the keys of apps and organizations. These are small global tables: the key determines which app a request
// is for, so it is looked up before any app is known.

import type { AppId, KeyId, OrganizationId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { AllowlistMode, KeyScope, KeySummary } from '../app.ts'

export type KeyRow = {
  id: KeyId
  kind: 'app' | 'org'
  organizationId: OrganizationId
  appId: AppId | null
  name: string
  hash: Buffer
  permissions: readonly string[]
  ipAllowlist: readonly string[]
}

export const insertKey = (db: Db, key: KeyRow & { ipAllowlistMode: AllowlistMode }, now: Date) =>
  db.query(sql`
    insert into api_keys (id, kind, organization_id, app_id, name, hash, permissions, ip_allowlist, ip_allowlist_mode,
      created_at, updated_at)
    values (${key.id}, ${key.kind}, ${key.organizationId}, ${key.appId}, ${key.name}, ${key.hash},
      ${key.permissions}, ${key.ipAllowlist}, ${key.ipAllowlistMode}, ${now}, ${now})`)

/** Finds keys by the hash of the whole key, without revoked ones. An allowlist that is disabled is returned empty. */
export const findKeysByHash = (db: Db, hashes: readonly Buffer[]) =>
  db.query<KeyRow>(sql`
    select id, kind, organization_id, app_id, name, hash, permissions,
      case ip_allowlist_mode when 'explicit' then ip_allowlist else '{}' end as ip_allowlist
    from api_keys
    where hash = any(${hashes}::bytea[]) and revoked_at is null`)

const within = (scope: KeyScope) =>
  scope.kind === 'app'
    ? sql`k.kind = 'app' and k.app_id = ${scope.appId}`
    : sql`k.kind = 'org' and k.organization_id = ${scope.organizationId}`

const summary = sql`
  k.id, k.name, k.permissions, k.ip_allowlist,
  case when k.ip_allowlist = '{}' then 'disabled' else k.ip_allowlist_mode end as ip_allowlist_mode,
  k.created_at, k.updated_at, (select u.last_used_at from api_key_usage u where u.key_id = k.id) as last_used_at`

export const findKeys = (db: Db, scope: KeyScope) =>
  db.query<KeySummary>(sql`
    select ${summary}
    from api_keys k
    where ${within(scope)} and k.revoked_at is null
    order by k.created_at, k.id`)

export async function lockKey(db: Db, scope: KeyScope, id: KeyId): Promise<KeySummary | undefined> {
  const [key] = await db.query<KeySummary>(sql`
    select ${summary}
    from api_keys k
    where k.id = ${id} and ${within(scope)} and k.revoked_at is null
    for update`)
  return key
}

export type KeyChange = Pick<KeySummary, 'name' | 'permissions' | 'ipAllowlist' | 'ipAllowlistMode'>

export const updateKey = (db: Db, scope: KeyScope, id: KeyId, key: KeyChange, now: Date) =>
  db.query(sql`
    update api_keys k
    set name = ${key.name}, permissions = ${key.permissions}, ip_allowlist = ${key.ipAllowlist},
      ip_allowlist_mode = ${key.ipAllowlistMode}, updated_at = ${now}
    where k.id = ${id} and ${within(scope)}`)

/**
 * Replaces the secret of a key that is not revoked, and returns the key's name. The old secret finds nothing any more.
 */
export async function replaceHash(
  db: Db,
  scope: KeyScope,
  id: KeyId,
  hash: Buffer,
  now: Date,
): Promise<string | undefined> {
  const [key] = await db.query<{ name: string }>(sql`
    update api_keys k
    set hash = ${hash}, updated_at = ${now}
    where k.id = ${id} and ${within(scope)} and k.revoked_at is null
    returning k.name`)
  return key?.name
}

/** Returns the name of the key if this call revoked it. */
export async function markKeyRevoked(db: Db, scope: KeyScope, id: KeyId, now: Date): Promise<string | undefined> {
  const [key] = await db.query<{ name: string }>(sql`
    update api_keys k
    set revoked_at = ${now}, updated_at = ${now}
    where k.id = ${id} and ${within(scope)} and k.revoked_at is null
    returning k.name`)
  return key?.name
}

/** Sorted, so that servers that write at the same time wait for each other instead of deadlocking. */
export const upsertKeyUsage = (db: Db, uses: ReadonlyMap<KeyId, Date>) =>
  db.query(sql`
    insert into api_key_usage (key_id, last_used_at)
    select r.key_id, r.at from jsonb_to_recordset(${rows(
      [...uses].sort().map(([id, at]) => ({ key_id: id, at })),
    )}::jsonb) as r(key_id uuid, at timestamptz)
    on conflict (key_id) do update
    set last_used_at = greatest(api_key_usage.last_used_at, excluded.last_used_at)`)
