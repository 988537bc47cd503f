// Adds, pauses, resumes and removes sending domains and rotates their keys. Each change adds an audit entry.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { lockApp } from '../../apps/store.ts'
import { AppError, appNotFound, forbidden, invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { EmailContext } from '../context.ts'
import { findEmailRoute } from '../find-route.ts'
import { makeKeys } from './dkim-keys.ts'
import {
  type Algorithm,
  algorithms,
  domainConflict,
  domainNotFound,
  type EmailDomain,
  keysInState,
  MAX_DOMAINS,
  readHost,
} from './domain.ts'
import { checkKey, type DnsRecord, recordsOf } from './records.ts'
import type { NewDomainBody } from './schema.ts'
import { countDomains, deleteDomain, findDomain, lockDomain, writeDomain } from './store.ts'
import { findMissingRecords, recordDomainAudit, verifyDomain } from './verify.ts'

export async function addDomain(
  ctx: EmailContext,
  appId: AppId,
  body: NewDomainBody,
  by: RequestOrigin,
): Promise<EmailDomain> {
  const domain = readHost('domain', body.domain)
  const returnPathHost = body.return_path_host ? readHost('return_path_host', body.return_path_host) : null
  const trackingHost = body.tracking_host ? readHost('tracking_host', body.tracking_host) : null
  if (trackingHost !== null && !ctx.home.isPublic)
    throw invalid('tracking_host needs a server with a PUBLIC_URL, which it is to lead to', { field: 'tracking_host' })
  const kinds = algorithms.filter((it) => body.dkim?.algorithms?.includes(it) ?? true)
  const now = ctx.now()
  const known = await findDomain(ctx.db, appId, domain)
  if (known && known.dkimKeys.length > 0) throw domainConflict('The app has this domain already')
  const dkimKeys = await makeKeys(ctx, appId, domain, kinds, 'active', now)
  return ctx.db.transaction(async (db) => {
    // The domains are counted under the lock of the app, so that concurrent requests cannot exceed the limit.
    if (!(await lockApp(db, appId))) throw appNotFound()
    // A domain from which mail was caught, or for which events were loaded, exists without keys. It is completed here.
    const before = await lockDomain(db, appId, domain)
    if (before && before.dkimKeys.length > 0) throw domainConflict('The app has this domain already')
    if (!before && (await countDomains(db, appId)) >= MAX_DOMAINS)
      throw domainConflict(`An app can have at most ${MAX_DOMAINS} email domains`)
    const fresh = { state: 'pending', activatedBy: null, createdAt: now } as const
    const rest = { domain, returnPathHost, trackingHost, dkimKeys, checks: {}, checkedAt: null, updatedAt: now }
    const after: EmailDomain = { ...(before ?? fresh), ...rest }
    await writeDomain(db, appId, after)
    const selectors = dkimKeys.map(({ selector }) => selector)
    await recordDomainAudit(ctx, db, appId, actorOf(by), 'email_domain.add', domain, { selectors }, now)
    return after
  })
}

export function removeDomain(ctx: EmailContext, appId: AppId, domain: string, by: RequestOrigin): Promise<void> {
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    if (!(await deleteDomain(db, appId, domain))) throw domainNotFound()
    await recordDomainAudit(ctx, db, appId, actorOf(by), 'email_domain.remove', domain, {}, now)
  })
}

/** A domain becomes active only when its records are published, or when an operator forces it. */
export async function setDomainState(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
  { state, force }: { state: 'active' | 'paused'; force?: boolean | undefined },
  by: RequestOrigin,
): Promise<EmailDomain> {
  const isForced = state === 'active' && force === true
  if (isForced) refuseForce(by)
  // The records are checked now, because those seen by an earlier check may be gone.
  if (state === 'active' && !isForced) await refuseUnverified(ctx, appId, await verifyDomain(ctx, appId, domain, by))
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (!before) throw domainNotFound()
    const activatedBy = isForced ? 'force' : state === 'active' ? 'check' : before.activatedBy
    if (before.state === state && before.activatedBy === activatedBy) return before
    const after: EmailDomain = { ...before, state, activatedBy, updatedAt: now }
    await writeDomain(db, appId, after)
    const action = state === 'active' ? 'email_domain.activate' : 'email_domain.pause'
    await recordDomainAudit(
      ctx,
      db,
      appId,
      actorOf(by),
      action,
      domain,
      state === 'active' ? { by: activatedBy } : {},
      now,
    )
    return after
  })
}

/**
 * The first call makes keys to be published. The next call, once they are published, makes them sign instead of the old
 * keys.
 */
export async function rotateKeys(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
  force: boolean,
  by: RequestOrigin,
): Promise<EmailDomain> {
  if (force) refuseForce(by)
  const known = await findDomain(ctx.db, appId, domain)
  if (!known) throw domainNotFound()
  return keysInState(known, 'next').length === 0
    ? publishNextKeys(ctx, appId, known, by)
    : switchKeys(ctx, appId, domain, force, by)
}

async function publishNextKeys(
  ctx: EmailContext,
  appId: AppId,
  known: EmailDomain,
  by: RequestOrigin,
): Promise<EmailDomain> {
  const { domain } = known
  const now = ctx.now()
  const active = keysInState(known, 'active').map(({ algorithm }) => algorithm)
  const kinds: readonly Algorithm[] = active.length > 0 ? active : algorithms
  const next = await makeKeys(ctx, appId, domain, kinds, 'next', now)
  return ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (!before) throw domainNotFound()
    if (keysInState(before, 'next').length > 0) throw domainConflict('New keys were made by another request just now')
    // The keys that the previous rotation retired have been out of use for long enough.
    const dkimKeys = [...keysInState(before, 'active'), ...next]
    const after: EmailDomain = { ...before, dkimKeys, updatedAt: now }
    await writeDomain(db, appId, after)
    const selectors = next.map(({ selector }) => selector)
    await recordDomainAudit(ctx, db, appId, actorOf(by), 'email_domain.new_keys', domain, { selectors }, now)
    return after
  })
}

async function switchKeys(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
  force: boolean,
  by: RequestOrigin,
): Promise<EmailDomain> {
  const seen = force ? undefined : await verifyDomain(ctx, appId, domain, by)
  const route = await findEmailRoute(ctx, appId)
  if (seen) {
    const next = recordsOf(ctx, seen, route).filter(({ key }) => key?.state === 'next')
    refuseFaults(next.filter((record) => ownProperty(seen.checks, checkKey(record))?.state !== 'ok'))
  }
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (!before) throw domainNotFound()
    const next = keysInState(before, 'next')
    if (next.length === 0) throw domainConflict('The keys were switched by another request just now')
    const retired = keysInState(before, 'active').map((key) => ({ ...key, state: 'retired' as const, sealed: null }))
    const dkimKeys = [...next.map((key) => ({ ...key, state: 'active' as const })), ...retired]
    const after: EmailDomain = { ...before, dkimKeys, updatedAt: now }
    await writeDomain(db, appId, after)
    const detail = { selectors: next.map(({ selector }) => selector), retired: retired.map((it) => it.selector) }
    await recordDomainAudit(ctx, db, appId, actorOf(by), 'email_domain.switch_keys', domain, detail, now)
    return after
  })
}

function refuseForce({ caller: { kind } }: RequestOrigin): void {
  if (kind !== 'organization' && kind !== 'operator')
    throw forbidden('force is for organization keys and the command line')
}

async function refuseUnverified(ctx: EmailContext, appId: AppId, seen: EmailDomain): Promise<void> {
  refuseFaults(findMissingRecords(recordsOf(ctx, seen, await findEmailRoute(ctx, appId)), seen.checks))
}

function refuseFaults(records: readonly DnsRecord[]): void {
  if (records.length === 0) return
  throw new AppError(
    'invalid',
    ...records.map(({ type, name, value }) => ({
      code: 'email-domain-2',
      title: `DNS has no ${type} record ${name} with ${value}`,
    })),
  )
}
