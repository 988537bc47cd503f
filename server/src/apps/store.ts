// All SQL on organizations, apps and audit_log. The SQL on their keys is in keys/store.ts.

import type { AppGate } from '../http/route.ts'
import { type AppId, type OrganizationId, SYSTEM_APP_ID } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, type Sql, sql } from '../storage/sql.ts'
import type { Actor, AppSettings } from './app.ts'
import type { SealedCredentials } from './credentials/sealed.ts'
import type { EmailSettings } from './email-settings.ts'
import type { PushSettings } from './settings.ts'
import type { SmsSettings } from './sms/read.ts'

/** An arbitrary constant. */
const FIRST_START_LOCK = 22_745_567

/**
 * Held until the transaction ends: of several servers that start on an empty database one continues and the others
 * wait.
 */
export const lockFirstStart = (db: Db) => db.query(sql`select pg_advisory_xact_lock(${FIRST_START_LOCK})`)

export async function hasOrganization(db: Db): Promise<boolean> {
  const found = await db.query(sql`select id from organizations limit 1`)
  return found.length > 0
}

export const insertOrganization = (db: Db, organization: { id: OrganizationId; name: string }, now: Date) =>
  db.query(sql`
    insert into organizations (id, name, created_at)
    values (${organization.id}, ${organization.name}, ${now})`)

export const findOrganizations = (db: Db) =>
  db.query<{ id: OrganizationId; name: string; createdAt: Date }>(sql`
    select id, name, created_at as "createdAt" from organizations order by created_at, id`)

/** False when there is no such organization. Locks it, so that its keys can be counted. */
export async function lockOrganization(db: Db, id: OrganizationId): Promise<boolean> {
  const found = await db.query(sql`select id from organizations where id = ${id} for update`)
  return found.length > 0
}

export async function findOrganizationName(db: Db, id: OrganizationId): Promise<string | undefined> {
  const [found] = await db.query<{ name: string }>(sql`select name from organizations where id = ${id}`)
  return found?.name
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

/** What the push platforms need to know, and how SDKs are admitted. */
export type AppConfiguration = {
  name: string
  pushSettings: PushSettings
  credentials: SealedCredentials
  /** Null until it is first needed; see vapid.ts. */
  vapidPublicKey: string | null
} & Pick<AppSettings, 'keylessSdk' | 'identityRequired' | 'identityPublicKey'>

export type AppOverview = AppSettings &
  AppConfiguration & {
    id: AppId
    organizationId: OrganizationId
    /** Null without an SMS provider. */
    smsSettings: SmsSettings | null
    /** Null when email is sent as configured for the server. */
    emailSettings: EmailSettings | null
    createdAt: Date
    updatedAt: Date
  }

const overview = sql`id, organization_id, name, plan, limits, keyless_sdk, identity_required, identity_public_key,
  push_settings, sms_settings, email_settings, credentials, vapid_public_key, created_at, updated_at`

export async function findApp(db: Db, id: AppId): Promise<AppOverview | undefined> {
  const [app] = await db.query<AppOverview>(sql`select ${overview} from apps where id = ${id}`)
  return app
}

export async function lockApp(db: Db, id: AppId): Promise<AppOverview | undefined> {
  const [app] = await db.query<AppOverview>(sql`select ${overview} from apps where id = ${id} for update`)
  return app
}

/** All apps, of the server or of one organization. */
export const findAllApps = (db: Db, organizationId?: OrganizationId) =>
  db.query<AppOverview>(sql`
    select ${overview}
    from apps
    where ${organizationId ?? null}::uuid is null or organization_id = ${organizationId ?? null}
    order by created_at, id`)

export const updateApp = (db: Db, id: AppId, app: AppSettings, now: Date) =>
  db.query(sql`
    update apps
    set name = ${app.name}, plan = ${app.plan}, limits = ${JSON.stringify(app.limits)}, keyless_sdk = ${app.keylessSdk},
      identity_required = ${app.identityRequired}, identity_public_key = ${app.identityPublicKey}, updated_at = ${now}
    where id = ${id}`)

/** Writes the whole configuration, derived from the one that was read under the lock. */
export const updateConfiguration = (db: Db, id: AppId, app: AppConfiguration, now: Date) =>
  db.query(sql`
    update apps
    set name = ${app.name}, push_settings = ${JSON.stringify(app.pushSettings)},
      credentials = ${JSON.stringify(app.credentials)}, vapid_public_key = ${app.vapidPublicKey},
      keyless_sdk = ${app.keylessSdk}, identity_required = ${app.identityRequired},
      identity_public_key = ${app.identityPublicKey}, updated_at = ${now}
    where id = ${id}`)

/** Across all apps: those whose SMS go through an SMPP message centre. */
export const findSmppAppsAcrossApps = (db: Db) =>
  db.query<{ id: AppId }>(sql`select id from apps where sms_settings ->> 'kind' = 'smpp'`)

/** Also writes all credentials of the app, derived from those that were read under the lock. */
export const updateSmsSettings = (
  db: Db,
  id: AppId,
  settings: SmsSettings | null,
  credentials: SealedCredentials,
  now: Date,
) =>
  db.query(sql`
    update apps
    set sms_settings = ${settings && JSON.stringify(settings)}, credentials = ${JSON.stringify(credentials)},
      updated_at = ${now}
    where id = ${id}`)

/** Also writes all credentials of the app, as for SMS. */
export const updateEmailSettings = (
  db: Db,
  id: AppId,
  settings: EmailSettings | null,
  credentials: SealedCredentials,
  now: Date,
) =>
  db.query(sql`
    update apps
    set email_settings = ${settings && JSON.stringify(settings)}, credentials = ${JSON.stringify(credentials)},
      updated_at = ${now}
    where id = ${id}`)

/** The first pair is kept; a later call changes nothing. */
export const setVapidPair = (db: Db, id: AppId, publicKey: string, sealedPrivateKey: string) =>
  db.query(sql`
    update apps
    set vapid_public_key = ${publicKey}, credentials = credentials || jsonb_build_object('vapid', ${sealedPrivateKey}::text)
    where id = ${id} and vapid_public_key is null`)

export type AuditEntry = {
  id: string
  actor: Actor
  action: string
  targetType:
    | 'organization'
    | 'app'
    | 'key'
    | 'user'
    | 'segment'
    | 'template'
    | 'administrator'
    | 'in_app_message'
    | 'event_webhook'
    | 'message'
    | 'export'
    | 'journey'
    | 'journey_webhook'
    | 'email_domain'
    | 'suppression'
  targetId: string
  detail?: Record<string, unknown>
}

export const insertAuditEntries = (db: Db, appId: AppId, entries: readonly AuditEntry[], at: Date) =>
  db.query(sql`
    insert into audit_log (app_id, organization_id, at, id, actor_kind, actor_id, actor_ip, action, target_type, target_id,
      detail)
    select a.id, a.organization_id, ${at}::timestamptz, r.id, r.actor_kind, r.actor_id, r.actor_ip, r.action, r.target_type,
      r.target_id, r.detail
    from apps a cross join jsonb_to_recordset(${rows(entries.map(auditRow))}::jsonb)
      as r(id uuid, actor_kind text, actor_id uuid, actor_ip text, action text, target_type text, target_id text, detail jsonb)
    where a.id = ${appId}`)

/** Entries about an organization are stored under the system's app. It has no row, so its id is given as a value. */
export const insertOrganizationAuditEntries = (
  db: Db,
  organizationId: OrganizationId,
  entries: readonly AuditEntry[],
  at: Date,
) =>
  db.query(sql`
    insert into audit_log (app_id, organization_id, at, id, actor_kind, actor_id, actor_ip, action, target_type, target_id,
      detail)
    select ${SYSTEM_APP_ID}::uuid, ${organizationId}::uuid, ${at}::timestamptz, r.id, r.actor_kind, r.actor_id, r.actor_ip,
      r.action, r.target_type, r.target_id, r.detail
    from jsonb_to_recordset(${rows(entries.map(auditRow))}::jsonb)
      as r(id uuid, actor_kind text, actor_id uuid, actor_ip text, action text, target_type text, target_id text, detail jsonb)`)

const auditRow = ({ id, actor, action, targetType, targetId, detail }: AuditEntry) => ({
  id,
  actor_kind: actor.kind,
  actor_id: actor.kind === 'system' ? null : actor.id,
  actor_ip: actor.kind === 'system' ? null : actor.ip,
  action,
  target_type: targetType,
  target_id: targetId,
  detail: detail ?? {},
})

export type AuditRow = {
  id: string
  at: Date
  appId: AppId
  action: string
  actorKind: Actor['kind']
  actorId: string | null
  actorIp: string | null
  targetType: string
  targetId: string
  detail: Record<string, unknown>
}

/** An absent list matches everything. */
export type AuditFilter = {
  appIds?: readonly string[] | undefined
  actions?: readonly string[] | undefined
  actorIds?: readonly string[] | undefined
  targetTypes?: readonly string[] | undefined
  targetIds?: readonly string[] | undefined
  ipAddresses?: readonly string[] | undefined
}

/** Oldest first, from `start` up to but not including `end`, after the entry named by `after`. */
export const findAuditEntries = (
  db: Db,
  organizationId: OrganizationId,
  { start, end, after }: { start: Date; end: Date; after: { at: Date; id: string } | undefined },
  filter: AuditFilter,
  limit: number,
) =>
  db.query<AuditRow>(sql`
    select l.id, l.at, l.app_id, l.action, l.actor_kind, l.actor_id, l.actor_ip, l.target_type, l.target_id, l.detail
    from audit_log l
    where l.organization_id = ${organizationId} and l.at >= ${start} and l.at < ${end}
      and (l.at, l.id) > (${after?.at ?? start}::timestamptz, ${after?.id ?? FIRST_ID}::uuid)
      and ${among(sql`l.app_id::text`, filter.appIds)} and ${among(sql`l.action`, filter.actions)}
      and ${among(sql`l.actor_id::text`, filter.actorIds)} and ${among(sql`l.actor_ip`, filter.ipAddresses)}
      and ${among(sql`l.target_type`, filter.targetTypes)} and ${among(sql`l.target_id`, filter.targetIds)}
    order by l.at, l.id
    limit ${limit}`)

const among = (column: Sql, values: readonly string[] | undefined) =>
  sql`(${values ?? null}::text[] is null or ${column} = any(${values ?? null}::text[]))`

/** Lower than every real id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

export const KEYS_CHANNEL = 'carillon_keys'

/** Reaches every server when the transaction commits. The payload is an id, which is not secret. */
export const notifyChange = (db: Db, what: 'key' | 'app', id: string) =>
  db.query(sql`select pg_notify(${KEYS_CHANNEL}, ${`${what} ${id}`})`)
