// Checks the records of a domain now and applies the results. DNS is queried outside any transaction, and the results
// are applied to the row as it is afterwards.

import { type Actor, SYSTEM } from '../../apps/app.ts'
import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { notifyAdministrators } from '../../sending/notify-administrators.ts'
import type { Db } from '../../storage/db.ts'
import type { EmailContext } from '../context.ts'
import { findEmailRoute, type ResolvedEmailRoute } from '../find-route.ts'
import { checkRecords } from './check.ts'
import { domainNotFound, type EmailDomain, isTrusted, type RecordCheck, type RecordChecks } from './domain.ts'
import { checkKey, type DnsRecord, recordsOf } from './records.ts'
import { findDomain, lockDomain, writeDomain } from './store.ts'

/** A pending domain becomes active when all required records are found. A paused domain stays paused. */
export async function verifyDomain(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
  by: RequestOrigin,
): Promise<EmailDomain> {
  const { checks, route } = await checkDomain(ctx, appId, domain)
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (!before) throw domainNotFound()
    const after = applyChecks(ctx, before, checks, route, now)
    const isReady = findMissingRecords(recordsOf(ctx, after, route), after.checks).length === 0
    if (isReady && before.state !== 'paused') {
      after.state = 'active'
      after.activatedBy = 'check'
    }
    await writeDomain(db, appId, after)
    if (isTrusted(after) && !isTrusted(before))
      await recordDomainAudit(ctx, db, appId, actorOf(by), 'email_domain.activate', domain, { by: 'check' }, now)
    return after
  })
}

/** The daily check of an active domain. Without a published key, the domain stops sending. */
export async function recheckDomain(ctx: EmailContext, appId: AppId, domain: string): Promise<void> {
  const known = await findDomain(ctx.db, appId, domain)
  if (!known) return
  const { checks, route } = await checkDomain(ctx, appId, domain)
  const now = ctx.now()
  await ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (before?.state !== 'active' || before.activatedBy !== 'check') return
    const after = applyChecks(ctx, before, checks, route, now)
    const keys = recordsOf(ctx, after, route).filter(({ key }) => key?.state === 'active')
    const found = keys.map((record) => ownProperty(after.checks, checkKey(record))?.state)
    const isGone = found.length > 0 && found.every((state) => state === 'missing' || state === 'wrong')
    if (isGone) {
      after.state = 'pending'
      after.activatedBy = null
    }
    await writeDomain(db, appId, after)
    if (!isGone) return
    const detail = { domain, records: keys.map(({ name }) => name) }
    await recordDomainAudit(ctx, db, appId, SYSTEM, 'email_domain.fail', domain, detail, now)
    await notifyAdministrators(db, appId, 'email.domain_failing', detail, now)
  })
}

async function checkDomain(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
): Promise<{ checks: RecordChecks; route: ResolvedEmailRoute }> {
  const known = await findDomain(ctx.db, appId, domain)
  if (!known) throw domainNotFound()
  const route = await findEmailRoute(ctx, appId)
  return { checks: await checkRecords(ctx.resolver, recordsOf(ctx, known, route)), route }
}

/** Keeps only the results for records that the domain still needs. */
function applyChecks(
  ctx: EmailContext,
  before: EmailDomain,
  checks: RecordChecks,
  route: ResolvedEmailRoute,
  now: Date,
): EmailDomain {
  const names = recordsOf(ctx, before, route).map(checkKey)
  const kept = names.flatMap((name): [string, RecordCheck][] => {
    const check = ownProperty(checks, name) ?? ownProperty(before.checks, name)
    return check ? [[name, check]] : []
  })
  return { ...before, checks: Object.fromEntries(kept), checkedAt: now, updatedAt: now }
}

/** Required records that are not in DNS, or all records when the domain has no active key. */
export const findMissingRecords = (records: readonly DnsRecord[], checks: RecordChecks): DnsRecord[] =>
  records.some(({ key }) => key?.state === 'active')
    ? records.filter((record) => record.isRequired && ownProperty(checks, checkKey(record))?.state !== 'ok')
    : [...records]

export const recordDomainAudit = (
  { newId }: Pick<EmailContext, 'newId'>,
  db: Db,
  appId: AppId,
  actor: Actor,
  action: string,
  domain: string,
  detail: Record<string, unknown>,
  now: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor, action, targetType: 'email_domain', targetId: domain, detail }],
    now,
  )
