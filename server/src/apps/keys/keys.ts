import type { Clock } from '../../lib/clock.ts'
import { AppError, appNotFound, invalid } from '../../lib/errors.ts'
import { type KeyId, newId, type OrganizationId } from '../../lib/ids.ts'
import { parseNetwork } from '../../lib/networks.ts'
import { permissions as allPermissions, type Permission } from '../../lib/permissions.ts'
import { newApiKey, sha256 } from '../../lib/secrets.ts'
import { codePoints, isStorable } from '../../lib/text.ts'
import type { Db } from '../../storage/db.ts'
import type { Actor, IssuedKey, KeyScope, KeySummary, NewKey } from '../app.ts'
import {
  type AuditEntry,
  insertAuditEntries,
  insertOrganizationAuditEntries,
  lockApp,
  lockOrganization,
  notifyChange,
} from '../store.ts'
import { findKeys, insertKey, lockKey, markKeyRevoked, replaceHash, updateKey } from './store.ts'

export type KeysContext = { db: Db; clock: Clock }

export const MAX_KEYS = 16
const MAX_NETWORKS = 100

/** Returns the key in clear, only this once; its hash is what is stored. */
export async function issueKey(
  { db, clock }: KeysContext,
  scope: KeyScope,
  draft: NewKey,
  actor: Actor,
): Promise<IssuedKey> {
  checkKey(draft)
  const now = clock.now()
  return db.transaction(async (db) => {
    const organizationId = await lockOwner(db, scope)
    const present = await findKeys(db, scope)
    if (present.length >= MAX_KEYS) throw invalid(`There can be at most ${MAX_KEYS} keys`)
    const keyId: KeyId = newId()
    const key = draft.key ?? newApiKey(scope.kind)
    const permissions = scope.kind === 'app' ? (draft.permissions ?? allPermissions) : []
    const ipAllowlist = draft.ipAllowlist ?? []
    const ipAllowlistMode = draft.ipAllowlistMode ?? (ipAllowlist.length > 0 ? 'explicit' : 'disabled')
    await insertKey(
      db,
      {
        id: keyId,
        kind: scope.kind,
        organizationId,
        appId: scope.kind === 'app' ? scope.appId : null,
        name: draft.name,
        hash: sha256(key),
        permissions,
        ipAllowlist,
        ipAllowlistMode,
      },
      now,
    )
    const detail = auditDetail({ name: draft.name, permissions, ipAllowlist, ipAllowlistMode })
    await audit(db, scope, actor, 'key.issue', keyId, detail, now)
    await notifyChange(db, 'key', keyId)
    return { keyId, key }
  })
}

export type KeyChanges = {
  [Field in 'name' | 'permissions' | 'ipAllowlist' | 'ipAllowlistMode']?: NewKey[Field] | undefined
}

/** Fields that are left out keep their values. */
export function changeKey(
  { db, clock }: KeysContext,
  scope: KeyScope,
  keyId: KeyId,
  changes: KeyChanges,
  actor: Actor,
): Promise<void> {
  const now = clock.now()
  return db.transaction(async (db) => {
    const before = await lockKey(db, scope, keyId)
    if (!before) throw keyNotFound()
    const after = {
      name: changes.name ?? before.name,
      permissions: [...(changes.permissions ?? before.permissions)] as Permission[],
      ipAllowlist: [...(changes.ipAllowlist ?? before.ipAllowlist)],
      ipAllowlistMode: changes.ipAllowlistMode ?? before.ipAllowlistMode,
    }
    checkKey(after)
    await updateKey(db, scope, keyId, after, now)
    await audit(db, scope, actor, 'key.update', keyId, auditDetail(changes), now)
    await notifyChange(db, 'key', keyId)
  })
}

/** Gives the key a new secret; the old secret stops working like a revoked key. */
export async function rotateKey(
  { db, clock }: KeysContext,
  scope: KeyScope,
  keyId: KeyId,
  actor: Actor,
): Promise<IssuedKey> {
  const now = clock.now()
  const key = newApiKey(scope.kind)
  return db.transaction(async (db) => {
    const name = await replaceHash(db, scope, keyId, sha256(key), now)
    if (name === undefined) throw keyNotFound()
    await audit(db, scope, actor, 'key.rotate', keyId, { name }, now)
    await notifyChange(db, 'key', keyId)
    return { keyId, key }
  })
}

/**
 * Takes effect on every server within 5 s: at once where the notification arrives, otherwise when the cached key is 4 s
 * old.
 */
export function revokeKey({ db, clock }: KeysContext, scope: KeyScope, keyId: KeyId, actor: Actor): Promise<void> {
  const now = clock.now()
  return db.transaction(async (db) => {
    const name = await markKeyRevoked(db, scope, keyId, now)
    if (name === undefined) throw keyNotFound()
    await audit(db, scope, actor, 'key.revoke', keyId, { name }, now)
    await notifyChange(db, 'key', keyId)
  })
}

export const listKeys = ({ db }: Pick<KeysContext, 'db'>, scope: KeyScope): Promise<KeySummary[]> => findKeys(db, scope)

const keyNotFound = () => new AppError('not-found', { code: 'key-0', title: 'Key not found' })

function checkKey({ name, permissions = [], ipAllowlist = [], ipAllowlistMode, key }: NewKey): void {
  if (!isStorable(name) || name === '' || codePoints(name) > 128)
    throw invalid('name must have from 1 to 128 characters', { field: 'name' })
  for (const permission of permissions)
    if (!allPermissions.includes(permission))
      throw invalid(`permissions: "${permission}" is none of ${allPermissions.join(', ')}`, { field: 'permissions' })
  if (ipAllowlist.length > MAX_NETWORKS)
    throw invalid(`ip_allowlist must have at most ${MAX_NETWORKS} entries`, { field: 'ip_allowlist' })
  // An empty allowlist admits everybody, which is the opposite of what enabling the check is meant to do.
  if (ipAllowlistMode === 'explicit' && ipAllowlist.length === 0)
    throw invalid('ip_allowlist must not be empty while ip_allowlist_mode is "explicit"', { field: 'ip_allowlist' })
  ipAllowlist.forEach((network, i) => {
    if (!parseNetwork(network))
      throw invalid(`ip_allowlist[${i}] must be an address or a network, as 192.0.2.0/24`, { field: 'ip_allowlist' })
  })
  // Printable and without spaces, so that it can be sent in a header.
  if (key !== undefined && !/^[\x21-\x7e]{32,512}$/.test(key))
    throw invalid('A key must have from 32 to 512 printable characters', { field: 'key' })
}

async function lockOwner(db: Db, scope: KeyScope): Promise<OrganizationId> {
  if (scope.kind === 'app') {
    const app = await lockApp(db, scope.appId)
    if (!app) throw appNotFound()
    return app.organizationId
  }
  if (!(await lockOrganization(db, scope.organizationId)))
    throw new AppError('not-found', { code: 'organization-0', title: 'Organization not found' })
  return scope.organizationId
}

const auditDetail = ({ name, permissions, ipAllowlist, ipAllowlistMode }: KeyChanges) => ({
  name,
  permissions,
  ip_allowlist: ipAllowlist,
  ip_allowlist_mode: ipAllowlistMode,
})

function audit(
  db: Db,
  scope: KeyScope,
  actor: Actor,
  action: string,
  keyId: KeyId,
  detail: Record<string, unknown>,
  now: Date,
) {
  const entries: AuditEntry[] = [{ id: newId(), actor, action, targetType: 'key', targetId: keyId, detail }]
  return scope.kind === 'app'
    ? insertAuditEntries(db, scope.appId, entries, now)
    : insertOrganizationAuditEntries(db, scope.organizationId, entries, now)
}
