// Look at the records of a domain now, and draw the conclusions. DNS is asked outside of any transaction; what it said is
// applied to the row as it is afterwards.

import { type Actor, SYSTEM } from '../../apps/app.ts'
import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { giveNotice } from '../../sending/notify-administrators.ts'
import type { Db } from '../../storage/db.ts'
import type { EmailContext } from '../context.ts'
import { findWay, type MailWay } from '../find-route.ts'
import { checkRecords } from './check.ts'
import { type Check, type Checks, domainNotFound, type EmailDomain, isTrusted } from './domain.ts'
import { checkName, type DnsRecord, recordsOf } from './records.ts'
import { findDomain, lockDomain, writeDomain } from './store.ts'

/** One that waited for its records becomes active when all that are required are there; one that is paused stays so. */
export async function verifyDomain(
  ctx: EmailContext,
  appId: AppId,
  domain: string,
  by: RequestOrigin,
): Promise<EmailDomain> {
  const { checks, way } = await lookUp(ctx, appId, domain)
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (!before) throw domainNotFound()
    const after = withChecks(ctx, before, checks, way, now)
    const isReady = findFaults(recordsOf(ctx, after, way), after.checks).length === 0
    if (isReady && before.state !== 'paused') {
      after.state = 'active'
      after.activatedBy = 'check'
    }
    await writeDomain(db, appId, after)
    if (isTrusted(after) && !isTrusted(before))
      await note(ctx, db, appId, actorOf(by), 'email_domain.activate', domain, { by: 'check' }, now)
    return after
  })
}

/** The daily look at one that is active: without a key that is still published it sends no more. */
export async function recheckDomain(ctx: EmailContext, appId: AppId, domain: string): Promise<void> {
  const known = await findDomain(ctx.db, appId, domain)
  if (!known) return
  const { checks, way } = await lookUp(ctx, appId, domain)
  const now = ctx.now()
  await ctx.db.transaction(async (db) => {
    const before = await lockDomain(db, appId, domain)
    if (before?.state !== 'active' || before.activatedBy !== 'check') return
    const after = withChecks(ctx, before, checks, way, now)
    const keys = recordsOf(ctx, after, way).filter(({ key }) => key?.state === 'active')
    const found = keys.map((record) => ownProperty(after.checks, checkName(record))?.state)
    const isGone = found.length > 0 && found.every((state) => state === 'missing' || state === 'wrong')
    if (isGone) {
      after.state = 'pending'
      after.activatedBy = null
    }
    await writeDomain(db, appId, after)
    if (!isGone) return
    const detail = { domain, records: keys.map(({ name }) => name) }
    await note(ctx, db, appId, SYSTEM, 'email_domain.fail', domain, detail, now)
    await giveNotice(db, appId, 'email.domain_failing', detail, now)
  })
}

async function lookUp(ctx: EmailContext, appId: AppId, domain: string): Promise<{ checks: Checks; way: MailWay }> {
  const known = await findDomain(ctx.db, appId, domain)
  if (!known) throw domainNotFound()
  const way = await findWay(ctx, appId)
  return { checks: await checkRecords(ctx.resolver, recordsOf(ctx, known, way)), way }
}

/** Of records that the domain still has. */
function withChecks(ctx: EmailContext, before: EmailDomain, checks: Checks, way: MailWay, now: Date): EmailDomain {
  const names = recordsOf(ctx, before, way).map(checkName)
  const kept = names.flatMap((name): [string, Check][] => {
    const check = ownProperty(checks, name) ?? ownProperty(before.checks, name)
    return check ? [[name, check]] : []
  })
  return { ...before, checks: Object.fromEntries(kept), checkedAt: now, updatedAt: now }
}

/** Required records that are not there; all of them when there are no keys at all. */
export const findFaults = (records: readonly DnsRecord[], checks: Checks): DnsRecord[] =>
  records.some(({ key }) => key?.state === 'active')
    ? records.filter((record) => record.isRequired && ownProperty(checks, checkName(record))?.state !== 'ok')
    : [...records]

export const note = (
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
