// All SQL on organizations, apps, api_keys and audit_log. Organizations and keys are small global tables: a key is what tells
// which app a request is about, so it is looked up before any app is known.

import type { AppGate } from '../http/route.ts'
import type { AppId, KeyId, OrganizationId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { Actor, AppSettings, KeyScope, KeySummary } from './schema.ts'

/** Any constant of our own would do. */
const FIRST_START_LOCK = 22_745_567

/** Held until the transaction ends: of several servers that start on an empty database one goes on, the others wait. */
export const lockFirstStart = (db: Db) => db.query(sql`select pg_advisory_xact_lock(${FIRST_START_LOCK})`)

export async function hasOrganization(db: Db): Promise<boolean> {
  const found = await db.query(sql`select id from organizations limit 1`)
  return found.length > 0
}

export const insertOrganization = (db: Db, organization: { id: OrganizationId; name: string }, now: Date) =>
  db.query(sql`
    insert into organizations (id, name, created_at)
    values (${organization.id}, ${organization.name}, ${now})`)

/** False when there is no such organization. Locked, so that its keys can be counted. */
export async function lockOrganization(db: Db, id: OrganizationId): Promise<boolean> {
  const found = await db.query(sql`select id from organizations where id = ${id} for update`)
  return found.length > 0
}

export const insertApp = (db: Db, id: AppId, organizationId: OrganizationId, app: AppSettings, now: Date) =>
  db.query(sql`
    insert into apps (id, organization_id, name, plan, limits, keyless_sdk, identity_required, identity_public_key,
      created_at, updated_at)
    values (${id}, ${organizationId}, ${app.name}, ${app.plan}, ${JSON.stringify(app.limits)}, ${app.keylessSdk},
      ${app.identityRequired}, ${app.identityPublicKey}, ${now}, ${now})`)

export async function findAppGate(db: Db, id: AppId): Promise<AppGate | undefined> {
  const [app] = await db.query<AppGate>(sql`
    select id, organization_id, plan, limits, keyless_sdk, identity_required, identity_public_key
    from apps
    where id = ${id}`)
  return app
}

export type LockedApp = AppSettings & { organizationId: OrganizationId }

export async function lockApp(db: Db, id: AppId): Promise<LockedApp | undefined> {
  const [app] = await db.query<LockedApp>(sql`
    select organization_id, name, plan, limits, keyless_sdk, identity_required, identity_public_key
    from apps
    where id = ${id}
    for update`)
  return app
}

export const updateApp = (db: Db, id: AppId, app: AppSettings, now: Date) =>
  db.query(sql`
    update apps
    set name = ${app.name}, plan = ${app.plan}, limits = ${JSON.stringify(app.limits)}, keyless_sdk = ${app.keylessSdk},
      identity_required = ${app.identityRequired}, identity_public_key = ${app.identityPublicKey}, updated_at = ${now}
    where id = ${id}`)

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

export const insertKey = (db: Db, key: KeyRow, now: Date) =>
  db.query(sql`
    insert into api_keys (id, kind, organization_id, app_id, name, hash, permissions, ip_allowlist, created_at, updated_at)
    values (${key.id}, ${key.kind}, ${key.organizationId}, ${key.appId}, ${key.name}, ${key.hash},
      ${key.permissions}, ${key.ipAllowlist}, ${now}, ${now})`)

/** Keys by the hash of the whole key, without those revoked. */
export const findKeysByHash = (db: Db, hashes: readonly Buffer[]) =>
  db.query<KeyRow>(sql`
    select id, kind, organization_id, app_id, name, hash, permissions, ip_allowlist
    from api_keys
    where hash = any(${hashes}::bytea[]) and revoked_at is null`)

const within = (scope: KeyScope) =>
  scope.kind === 'app'
    ? sql`kind = 'app' and app_id = ${scope.appId}`
    : sql`kind = 'org' and organization_id = ${scope.organizationId}`

export const findKeys = (db: Db, scope: KeyScope) =>
  db.query<KeySummary>(sql`
    select id, name, permissions, ip_allowlist, created_at, updated_at
    from api_keys
    where ${within(scope)} and revoked_at is null
    order by created_at, id`)

/** The name of the key that was revoked by this very call. */
export async function markKeyRevoked(db: Db, scope: KeyScope, id: KeyId, now: Date): Promise<string | undefined> {
  const [key] = await db.query<{ name: string }>(sql`
    update api_keys
    set revoked_at = ${now}, updated_at = ${now}
    where id = ${id} and ${within(scope)} and revoked_at is null
    returning name`)
  return key?.name
}

export type AuditEntry = {
  id: string
  actor: Actor
  action: string
  targetType: 'organization' | 'app' | 'key' | 'user' | 'segment'
  targetId: string
  detail?: Record<string, unknown>
}

/** What concerns an organization is kept under the system's app, which has no row: so the app comes as a value. */
export const insertAuditEntries = (db: Db, appId: AppId, entries: readonly AuditEntry[], at: Date) =>
  db.query(sql`
    insert into audit_log (app_id, at, id, actor_kind, actor_id, action, target_type, target_id, detail)
    select ${appId}::uuid, ${at}::timestamptz, r.id, r.actor_kind, r.actor_id, r.action, r.target_type, r.target_id, r.detail
    from jsonb_to_recordset(${rows(entries.map(auditRow))}::jsonb)
      as r(id uuid, actor_kind text, actor_id uuid, action text, target_type text, target_id text, detail jsonb)`)

const auditRow = ({ id, actor, action, targetType, targetId, detail }: AuditEntry) => ({
  id,
  actor_kind: actor.kind,
  actor_id: actor.kind === 'system' ? null : actor.id,
  action,
  target_type: targetType,
  target_id: targetId,
  detail: detail ?? {},
})

export const KEYS_CHANNEL = 'carillon_keys'

/** Heard by every server when the transaction commits. Names what changed by its id, which is no secret. */
export const notifyChange = (db: Db, what: 'key' | 'app', id: string) =>
  db.query(sql`select pg_notify(${KEYS_CHANNEL}, ${`${what} ${id}`})`)

export type AppOverview = AppSettings & { id: AppId; organizationId: OrganizationId; createdAt: Date }

const overview = sql`id, organization_id, name, plan, limits, keyless_sdk, identity_required, identity_public_key, created_at`

export async function findApp(db: Db, id: AppId): Promise<AppOverview | undefined> {
  const [app] = await db.query<AppOverview>(sql`select ${overview} from apps where id = ${id}`)
  return app
}

/** Over all apps, for the operator. */
export const findAllApps = (db: Db, organizationId?: OrganizationId) =>
  db.query<AppOverview>(sql`
    select ${overview}
    from apps
    where ${organizationId ?? null}::uuid is null or organization_id = ${organizationId ?? null}
    order by created_at, id`)
