import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import { AppError, appNotFound, invalid } from '../lib/errors.ts'
import { type AppId, newId, type OrganizationId } from '../lib/ids.ts'
import { codePoints, isStorable } from '../lib/text.ts'
import type { Db } from '../storage/db.ts'
import { type Actor, type AppPlan, type AppSettings, type FirstOrganization, SYSTEM } from './app.ts'
import { issueKey } from './keys/keys.ts'
import {
  hasOrganization,
  insertApp,
  insertAuditEntries,
  insertOrganization,
  insertOrganizationAuditEntries,
  lockApp,
  lockFirstStart,
  lockOrganization,
  notifyChange,
  updateApp,
} from './store.ts'

export type CreateAppContext = {
  db: Db
  clock: Clock
  configureNew?: ConfigureNew | undefined
  /** The plan of new apps. Defaults to `paid`, because people who run the server for themselves have no plans. */
  defaultPlan?: AppPlan | undefined
}

/** Configures every new app, in the transaction that creates it; for servers whose providers are stand-ins. */
export type ConfigureNew = (ctx: { db: Db; clock: Clock }, appId: AppId) => Promise<void>

export async function createOrganization(
  { db, clock }: CreateAppContext,
  { id = newId(), name }: { id?: OrganizationId; name: string },
  actor: Actor,
): Promise<OrganizationId> {
  checkName(name)
  const now = clock.now()
  await db.transaction(async (db) => {
    await insertOrganization(db, { id, name }, now)
    await insertOrganizationAuditEntries(
      db,
      id,
      [
        {
          id: newId(),
          actor,
          action: 'organization.create',
          targetType: 'organization',
          targetId: id,
          detail: { name },
        },
      ],
      now,
    )
  })
  return id
}

const DEFAULTS: Omit<AppSettings, 'name'> = {
  plan: 'paid',
  limits: {},
  keylessSdk: true,
  identityRequired: false,
  identityPublicKey: null,
}

export async function createApp(
  { db, clock, configureNew, defaultPlan = DEFAULTS.plan }: CreateAppContext,
  organizationId: OrganizationId,
  draft: Partial<AppSettings> & { name: string },
  actor: Actor,
): Promise<AppId> {
  const app = { ...DEFAULTS, plan: defaultPlan, ...draft }
  checkApp(app)
  const id: AppId = newId()
  const now = clock.now()
  await db.transaction(async (db) => {
    if (!(await lockOrganization(db, organizationId)))
      throw new AppError('not-found', { code: 'organization-0', title: 'Organization not found' })
    await insertApp(db, id, organizationId, app, now)
    const detail = { name: app.name, organization_id: organizationId }
    await insertAuditEntries(
      db,
      id,
      [{ id: newId(), actor, action: 'app.create', targetType: 'app', targetId: id, detail }],
      now,
    )
    await notifyChange(db, 'app', id)
    await configureNew?.({ db, clock }, id)
  })
  return id
}

/** Changes what the request gate and the limits use: plan, own limits, access without a key, identity verification. */
export function setApp({ db, clock }: CreateAppContext, appId: AppId, changes: Partial<AppSettings>, actor: Actor) {
  const now = clock.now()
  return db.transaction(async (db) => {
    const before = await lockApp(db, appId)
    if (!before) throw appNotFound()
    const app = { ...before, ...changes }
    checkApp(app)
    await updateApp(db, appId, app, now)
    // A public key is not secret, but its name says more in a log than a page of its text.
    const { identityPublicKey, ...shown } = changes
    const given = { ...shown, ...(identityPublicKey !== undefined && { identityPublicKey: 'changed' }) }
    const detail = Object.fromEntries(Object.entries(given).map(([name, value]) => [wireName(name), value]))
    await insertAuditEntries(
      db,
      appId,
      [{ id: newId(), actor, action: 'app.set', targetType: 'app', targetId: appId, detail }],
      now,
    )
    await notifyChange(db, 'app', appId)
  })
}

const wireName = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * On an empty database, creates an organization, its first app, and a key for each, which are readable only this once.
 * Undefined when there is an organization already; when several servers start at once, exactly one gets the keys.
 */
export function ensureFirstOrganization(
  { db, clock, configureNew, defaultPlan }: CreateAppContext,
  given: { organizationId?: OrganizationId | undefined; organizationKey?: string | undefined } = {},
): Promise<FirstOrganization | undefined> {
  return db.transaction(async (db) => {
    await lockFirstStart(db)
    if (await hasOrganization(db)) return undefined
    // Inside this transaction, so that a failure half-way leaves an empty database and the next start tries again.
    const ctx = { db, clock, configureNew, defaultPlan }
    const organizationId = await createOrganization(
      ctx,
      { name: 'First organization', ...(given.organizationId !== undefined && { id: given.organizationId }) },
      SYSTEM,
    )
    const organizationKey = await issueKey(
      ctx,
      { kind: 'org', organizationId },
      { name: 'First organization key', ...(given.organizationKey !== undefined && { key: given.organizationKey }) },
      SYSTEM,
    )
    const appId = await createApp(ctx, organizationId, { name: 'First app' }, SYSTEM)
    const appKey = await issueKey(ctx, { kind: 'app', appId }, { name: 'First app key' }, SYSTEM)
    return { organizationId, organizationKey: organizationKey.key, appId, appKey: appKey.key }
  })
}

function checkName(name: string): void {
  if (!isStorable(name) || name === '' || codePoints(name) > 128)
    throw invalid('name must have from 1 to 128 characters', { field: 'name' })
}

function checkApp(app: AppSettings): void {
  const { name, plan, limits } = app
  checkName(name)
  if (plan !== 'free' && plan !== 'paid') throw invalid('plan must be "free" or "paid"', { field: 'plan' })
  for (const [rule, value] of Object.entries(limits))
    if (!isStorable(rule) || !Number.isSafeInteger(value) || value < 0)
      throw invalid(`limits.${rule} must be a whole number, 0 or more`, { field: 'limits' })
  checkIdentity(app)
}

export function checkIdentity({
  identityRequired,
  identityPublicKey,
}: Pick<AppSettings, 'identityRequired' | 'identityPublicKey'>): void {
  if (identityPublicKey !== null && !isFit(identityPublicKey))
    throw invalid('The identity key must be a public key in PEM: EC on P-256, or RSA of 2048 bits or more', {
      field: 'identity_public_key',
    })
  if (identityRequired && identityPublicKey === null)
    throw invalid('Identity verification needs a public key', { field: 'identity_public_key' })
}

function isFit(pem: string): boolean {
  // The parser would accept a private key as well, and that must not be stored.
  if (pem.includes('PRIVATE')) return false
  let key: KeyObject
  try {
    key = createPublicKey(pem)
  } catch {
    return false
  }
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  return key.asymmetricKeyType === 'ec'
    ? namedCurve === 'prime256v1'
    : key.asymmetricKeyType === 'rsa' && modulusLength >= 2048
}
