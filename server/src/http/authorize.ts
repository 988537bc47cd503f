// Decides who is calling and whether they may. The order is fixed: a key is present, the key is known, the app id is
// well-formed, the key covers the app, the key has the permission. A missing app and another organization's app get the
// same answer.

import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../lib/clock.ts'
import {
  type AppError,
  appNotFound,
  BadKey,
  forbidden,
  invalid,
  invalidUuid,
  missingAuthorization,
} from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'
import { sha256 } from '../lib/secrets.ts'
import { isAllowedAddress, isSameSecret, readSecret } from './auth.ts'
import { looksLikeToken, verifyIdentityToken } from './identity-token.ts'
import { isSdk, type KeylessLimiter } from './keyless-limiter.ts'
import type { RoutePlan } from './plan.ts'
import type { AppGate, Call, Caller, KeyLookup, KeyRecord, RouteAccess } from './route.ts'

export type AuthorizationContext = {
  keys: KeyLookup
  clock: Clock
  keylessLimiter: KeylessLimiter
  metricsToken: string | undefined
}

/** What the headers say, before the app is known. */
export type RequestIdentity =
  | { kind: 'anybody' }
  | { kind: 'key'; key: KeyRecord }
  | { kind: 'sdk'; token: string | undefined }

/** `key` is set for callers that were admitted by the permissions of an app key. */
export type AuthorizedEntry = { caller: Caller; app: AppGate | undefined; key?: KeyRecord }

/** A value or a promise of it, so that cached values are returned without a turn of the event loop. */
export type MaybePromise<Value> = Value | Promise<Value>

const ANYBODY = { kind: 'anybody' } as const

export function identify(
  { keys, metricsToken }: AuthorizationContext,
  { route: { access } }: RoutePlan,
  headers: IncomingHttpHeaders,
  params: Record<string, string>,
): MaybePromise<RequestIdentity> {
  if (access.kind === 'public') return ANYBODY
  const secret = readSecret(headers.authorization)
  if (secret === undefined) {
    if (allowsKeylessSdk(access, headers, params, false)) return { kind: 'sdk', token: undefined }
    throw missingAuthorization()
  }
  if (looksLikeToken(secret) && allowsKeylessSdk(access, headers, params, true)) return { kind: 'sdk', token: secret }
  if (access.kind === 'metrics' && metricsToken !== undefined && isSameSecret(secret, metricsToken)) return ANYBODY
  const found = keys.find(hashOf(secret))
  return found instanceof Promise ? found.then(identityOfKey) : identityOfKey(found)
}

/**
 * Callers send the same key with each request, and hashing it each time took a thirtieth of a request. The cache is
 * cleared when it is full.
 */
const hashes = new Map<string, Buffer>()
const MAX_HASHES = 1_000

function hashOf(secret: string): Buffer {
  let hash = hashes.get(secret)
  if (!hash) {
    hash = sha256(secret)
    if (hashes.size >= MAX_HASHES) hashes.clear()
    hashes.set(secret, hash)
  }
  return hash
}

function identityOfKey(key: KeyRecord | undefined): RequestIdentity {
  if (!key) throw new BadKey()
  return { kind: 'key', key }
}

const allowsKeylessSdk = (
  access: RouteAccess,
  headers: IncomingHttpHeaders,
  params: Record<string, string>,
  hasToken: boolean,
) => access.kind === 'app' && access.keyless !== undefined && isSdk(headers) && access.keyless(params, hasToken)

/** The app id from the request, in lower case. Where it may be omitted, it defaults to the app of the key. */
export function readAppId(
  given: unknown,
  { route: { access }, usesObjects }: RoutePlan,
  visitor: RequestIdentity,
): string {
  if (given === undefined || given === null || given === '') {
    const ofKey = visitor.kind === 'key' ? visitor.key.appId : null
    if (access.kind === 'app' && access.mayOmitApp && ofKey !== null) return ofKey
    throw invalid('app_id is required', { field: 'app_id' })
  }
  if (typeof given !== 'string') throw invalid('app_id must be a string', { field: 'app_id' })
  if (!isUuid(given)) throw usesObjects ? invalidUuid('app_id', given) : invalid('app_id must be a UUID')
  return given.toLowerCase()
}

/** Admits the caller to the named app, or throws. `appId` is undefined on routes that concern no app. */
export function authorize(
  keeper: AuthorizationContext,
  { route: { access, operation } }: RoutePlan,
  visitor: RequestIdentity,
  appId: string | undefined,
  ip: string,
): MaybePromise<AuthorizedEntry> {
  if (visitor.kind === 'anybody') {
    if (access.kind === 'public' && access.isCounted) keeper.keylessLimiter.count(ip, operation)
    return { caller: ANYBODY, app: undefined }
  }
  if (appId === undefined) {
    if (visitor.kind === 'key') return { caller: organizationCaller(visitor.key, ip), app: undefined }
    throw missingAuthorization()
  }
  if (visitor.kind === 'sdk') keeper.keylessLimiter.count(ip, appId)
  else if (visitor.key.kind === 'app' && visitor.key.appId !== appId) throw appOutOfReach(access)
  const found = keeper.keys.findApp(appId)
  return found instanceof Promise
    ? found.then((app) => authorizeForApp(keeper, access, visitor, app, ip))
    : authorizeForApp(keeper, access, visitor, found, ip)
}

function authorizeForApp(
  keeper: AuthorizationContext,
  access: RouteAccess,
  visitor: Exclude<RequestIdentity, { kind: 'anybody' }>,
  app: AppGate | undefined,
  ip: string,
): AuthorizedEntry {
  if (visitor.kind === 'sdk') return authorizeSdk(keeper, access, visitor.token, app)
  const { key } = visitor
  if (!app || app.organizationId !== key.organizationId) throw appOutOfReach(access)
  if (access.kind !== 'app' || (access.orOrganization && key.kind === 'org'))
    return { caller: organizationCaller(key, ip), app }
  if (key.kind !== 'app') throw forbidden('This operation needs an app key')
  if (!isAllowedAddress(key, ip)) throw addressNotAllowed()
  if (!key.permissions.includes(access.permission)) throw missingPermission(access.permission)
  return { caller: { kind: 'key', keyId: key.keyId }, app, key }
}

/**
 * Whether an operation needs its second permission may depend on what the request asks for, so this is checked after
 * the whole request has been read.
 */
export function requireSecondPermission({ route: { access } }: RoutePlan, { key }: AuthorizedEntry, call: Call): void {
  if (access.kind !== 'app' || !access.also || !key) return
  const { permission, when } = access.also
  if (key.permissions.includes(permission) || (when && !when.applies(call))) return
  throw missingPermission(permission, when?.reason)
}

const missingPermission = (permission: Permission, reason?: string) =>
  forbidden(`This key does not have the permission "${permission}"${reason ? `, which ${reason} needs` : ''}`)

function authorizeSdk(
  { clock }: AuthorizationContext,
  access: RouteAccess,
  token: string | undefined,
  app: AppGate | undefined,
): AuthorizedEntry {
  // A caller without a key must not learn whether an app exists.
  if (!app?.keylessSdk) throw missingAuthorization()
  if (token === undefined || app.identityPublicKey === null) {
    const isUnproven = access.kind === 'app' && access.isUnproven
    if (app.identityRequired && !isUnproven) throw missingAuthorization()
    return { caller: { kind: 'sdk', externalId: undefined }, app }
  }
  const externalId = verifyIdentityToken(token, { id: app.id, publicKey: app.identityPublicKey }, clock.now())
  return { caller: { kind: 'sdk', externalId }, app }
}

function organizationCaller(key: KeyRecord, ip: string): Caller {
  if (key.kind !== 'org') throw forbidden('This operation needs an organization key')
  if (!isAllowedAddress(key, ip)) throw addressNotAllowed()
  return { kind: 'organization', keyId: key.keyId, organizationId: key.organizationId }
}

const addressNotAllowed = () => forbidden('This key may not be used from this address')

const appOutOfReach = (access: RouteAccess): AppError =>
  access.kind === 'app' && access.foreign === 'bad-key' ? new BadKey() : appNotFound()
