// Create and update an app: the whole request is checked before anything is stored, and stored in one transaction.

import { AppError, appNotFound, forbidden, invalid, type Problem } from '../lib/errors.ts'
import { type AppId, newId, type OrganizationId } from '../lib/ids.ts'
import { type Actor, type AppSettings, SYSTEM } from './app.ts'
import type { AppsContext } from './context.ts'
import { type ConfigureNew, checkIdentity, createApp } from './create.ts'
import {
  type CredentialName,
  type Credentials,
  credentialNames,
  readCredential,
} from './credentials/read-credential.ts'
import { sealCredential } from './credentials/sealed.ts'
import { newVapidPair } from './credentials/vapid.ts'
import { type AppBody, MASK, type NewAppBody } from './schema.ts'
import { findMissing, readSetting, type SettingName, settingNames } from './settings.ts'
import { setSms } from './sms/configure.ts'
import { readSms } from './sms/read.ts'
import type { SmsBody } from './sms/schema.ts'
import {
  type AppConfiguration,
  type AppOverview,
  insertAuditEntries,
  lockApp,
  notifyChange,
  updateConfiguration,
} from './store.ts'

/** The owner of the credentials that the server gives to new apps. */
const SERVER = 'server'

type ConfigureContext = Pick<AppsContext, 'db' | 'clock' | 'secrets' | 'configureNew' | 'defaultPlan'>

/** What a request changes. Null clears; fields that are left out keep their values. */
type Changes = {
  name: string | undefined
  settings: { [Name in SettingName]?: string | null }
  isRootPayload: boolean | undefined
  credentials: { [Name in CredentialName]?: Credentials[Name] | null }
  door: Partial<Pick<AppSettings, 'keylessSdk' | 'identityRequired' | 'identityPublicKey'>>
}

export async function createConfiguredApp(
  ctx: ConfigureContext,
  organizationId: OrganizationId,
  body: NewAppBody,
  actor: Actor,
): Promise<AppId> {
  refuseOtherOrganization(body, organizationId)
  const changes = await readChanges(body, organizationId)
  return ctx.db.transaction(async (db) => {
    const appId = await createApp({ ...ctx, db }, organizationId, { name: body.name }, actor)
    await applyChanges({ ...ctx, db }, appId, changes, actor)
    return appId
  })
}

export async function updateApp(
  ctx: ConfigureContext,
  organizationId: OrganizationId,
  appId: AppId,
  body: AppBody,
  actor: Actor,
): Promise<void> {
  refuseOtherOrganization(body, organizationId)
  await applyChanges(ctx, appId, await readChanges(body, organizationId), actor)
}

/** Validates everything now, because an invalid value would make the creation of every new app fail. */
export async function configureNewWith(
  secrets: AppsContext['secrets'],
  body: AppBody,
  sms: SmsBody,
): Promise<ConfigureNew> {
  const changes = await readChanges(body, SERVER)
  readSms(sms)
  return async (ctx, appId) => {
    await applyChanges({ ...ctx, secrets }, appId, changes, SYSTEM)
    await setSms({ ...ctx, secrets }, appId, sms, SYSTEM)
  }
}

function refuseOtherOrganization(body: AppBody, organizationId: OrganizationId): void {
  if (typeof body.organization_id === 'string' && body.organization_id.toLowerCase() !== organizationId)
    throw forbidden('The organization key does not belong to the organization of organization_id')
}

/** Collects all problems and throws them together, so that nobody has to fix them one request at a time. */
async function readChanges(body: AppBody, owner: string): Promise<Changes> {
  const changes: Changes = {
    name: body.name ?? undefined,
    settings: {},
    isRootPayload: body.additional_data_is_root_payload ?? undefined,
    credentials: {},
    door: readDoor(body),
  }
  const problems: Problem[] = []
  const collect = async (read: () => unknown) => {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof AppError) || error.kind !== 'invalid') throw error
      problems.push(...error.problems)
    }
  }
  for (const name of settingNames) {
    const given = body[name]
    if (typeof given === 'string')
      await collect(() => Object.assign(changes.settings, { [name]: readSetting(name, given) }))
  }
  await collect(() => refuseContradictions(body))
  for (const name of credentialNames) {
    const given = body[name]
    if (typeof given === 'string' && given !== MASK)
      await collect(async () =>
        Object.assign(changes.credentials, {
          [name]: given === '' ? null : await readCredential(name, { given, password: passwordOf(body, name), owner }),
        }),
      )
  }
  if (problems.length > 0) throw new AppError('invalid', ...problems)
  return changes
}

/** Null means the same as left out, as everywhere in the body. */
function readDoor({ keyless, require_identity, identity_public_key }: AppBody): Changes['door'] {
  return {
    ...(typeof keyless === 'boolean' && { keylessSdk: keyless }),
    ...(typeof require_identity === 'boolean' && { identityRequired: require_identity }),
    ...(typeof identity_public_key === 'string' && { identityPublicKey: identity_public_key || null }),
  }
}

const passwordOf = (body: AppBody, name: CredentialName) =>
  (name === 'apns_p12' ? body.apns_p12_password : name === 'safari_apns_p12' ? body.safari_apns_p12_password : '') ?? ''

const isGiven = (credential: string | null | undefined) =>
  typeof credential === 'string' && credential !== '' && credential !== MASK

function refuseContradictions(body: AppBody): void {
  if (body.safari_site_origin && !('safari_apns_p12' in body))
    throw invalid('safari_apns_p12 must be there, if only as "", whenever safari_site_origin is set')
  if (isGiven(body.apns_p8) && isGiven(body.apns_p12)) throw invalid('apns_p8 and apns_p12 cannot be set together')
}

async function applyChanges({ db, clock, secrets }: ConfigureContext, appId: AppId, changes: Changes, actor: Actor) {
  const now = clock.now()
  await db.transaction(async (db) => {
    const before = await lockApp(db, appId)
    if (!before) throw appNotFound()
    const after = withPair(withChanges(before, changes))
    checkIdentity(after)
    const missing = findMissing(after.pushSettings, (name) => after.credentials[name] !== undefined)
    if (missing.length > 0) throw new AppError('invalid', ...missing.map((title) => ({ code: 'request-0', title })))
    const changed = findChanged(before, after)
    if (changed.length === 0 && before.vapidPublicKey !== null) return
    await updateConfiguration(db, appId, after, changed.length > 0 ? now : before.updatedAt)
    if (changed.length === 0) return
    const detail = { fields: changed, ...(after.name !== before.name && { name: after.name }) }
    await insertAuditEntries(
      db,
      appId,
      [{ id: newId(), actor, action: 'app.update', targetType: 'app', targetId: appId, detail }],
      now,
    )
    await notifyChange(db, 'app', appId)
  })

  function withChanges(before: AppOverview, changes: Changes): AppConfiguration {
    const { name, settings, isRootPayload, credentials, door } = changes
    const pushSettings = { ...before.pushSettings }
    for (const name of settingNames) {
      const value = settings[name]
      if (value === null) delete pushSettings[name]
      else if (value !== undefined) pushSettings[name] = value
    }
    if (isRootPayload === true) pushSettings.additional_data_is_root_payload = true
    if (isRootPayload === false) delete pushSettings.additional_data_is_root_payload
    const sealed = { ...before.credentials }
    for (const name of credentialNames) {
      const value = credentials[name]
      if (value === null) delete sealed[name]
      else if (value !== undefined) sealed[name] = sealCredential(secrets, appId, name, value)
    }
    // APNs is reached in one of two ways: setting one removes the other.
    if (credentials.apns_p8) delete sealed.apns_p12
    if (credentials.apns_p12) delete sealed.apns_p8
    const { safari_apns_p12: safari } = credentials
    if (safari !== undefined) delete pushSettings.safari_push_id
    if (safari?.subjectId) pushSettings.safari_push_id = safari.subjectId
    const { vapidPublicKey, keylessSdk, identityRequired, identityPublicKey } = before
    const letIn = { keylessSdk, identityRequired, identityPublicKey, ...door }
    return { name: name ?? before.name, pushSettings, credentials: sealed, vapidPublicKey, ...letIn }
  }

  function withPair(app: AppConfiguration): AppConfiguration {
    if (app.vapidPublicKey !== null) return app
    const { publicKey, privateKey } = newVapidPair()
    const credentials = { ...app.credentials, vapid: sealCredential(secrets, appId, 'vapid', { privateKey }) }
    return { ...app, credentials, vapidPublicKey: publicKey }
  }
}

/** The names of the fields that differ: the values of credentials must not be recorded. */
function findChanged(before: AppConfiguration, after: AppConfiguration): string[] {
  const names = [...settingNames, 'additional_data_is_root_payload', 'safari_push_id'] as const
  return [
    ...(before.name === after.name ? [] : ['name']),
    ...(before.keylessSdk === after.keylessSdk ? [] : ['keyless']),
    ...(before.identityRequired === after.identityRequired ? [] : ['require_identity']),
    ...(before.identityPublicKey === after.identityPublicKey ? [] : ['identity_public_key']),
    ...names.filter((name) => before.pushSettings[name] !== after.pushSettings[name]),
    ...credentialNames.filter((name) => before.credentials[name] !== after.credentials[name]),
  ]
}
