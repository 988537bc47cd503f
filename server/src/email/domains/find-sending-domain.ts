// Looks up the domain that a mail is sent from.

import { findApp, lockApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { EmailContext } from '../context.ts'
import { findEmailRoute, isCatchRoute } from '../find-route.ts'
import { openKeys, type SigningKey } from './dkim-keys.ts'
import { type EmailDomain, isTrusted, keysInState, MAX_DOMAINS, normalizeHost, returnPathOf } from './domain.ts'
import { countDomains, findDomain, lockDomain, writeDomain } from './store.ts'

export type SendingDomain = {
  domain: string
  returnPathHost: string
  /** Without a trailing slash. */
  trackingUrl: string
  /** The keys that sign. */
  dkim: SigningKey[]
}

type SendingDomainContext = Pick<EmailContext, 'db' | 'now' | 'secrets' | 'serverEmail' | 'home' | 'openedKeys'>

/**
 * Undefined unless the domain is active. When mail is only caught, any domain is accepted and becomes active on first
 * use.
 */
export async function findSendingDomain(
  ctx: SendingDomainContext,
  appId: AppId,
  domain: string,
): Promise<SendingDomain | undefined> {
  const name = normalizeHost(domain)
  if (name === undefined) return undefined
  const route = await findEmailRoute(ctx, appId)
  const known = await findDomain(ctx.db, appId, name)
  if (known && isTrusted(known)) return toSendingDomain(ctx, appId, known)
  if (!isCatchRoute(route) || known?.state === 'paused') return undefined
  const caught = known?.state === 'active' ? known : await activateCaughtDomain(ctx, appId, name)
  return caught && toSendingDomain(ctx, appId, caught)
}

function toSendingDomain(ctx: SendingDomainContext, appId: AppId, it: EmailDomain): SendingDomain {
  return {
    domain: it.domain,
    returnPathHost: returnPathOf(it),
    trackingUrl: it.trackingHost === null ? ctx.home.url : `https://${it.trackingHost}`,
    dkim: openKeys(ctx, appId, it.domain, keysInState(it, 'active')),
  }
}

/**
 * Mail may be caught from more domains than an app can have; domains beyond the limit are not stored. Returns undefined
 * if the domain was paused meanwhile.
 */
export function activateCaughtDomain(
  { db, now }: Pick<SendingDomainContext, 'db' | 'now'>,
  appId: AppId,
  domain: string,
): Promise<EmailDomain | undefined> {
  const at = now()
  return db.transaction(async (db) => {
    await lockApp(db, appId)
    const before = await lockDomain(db, appId, domain)
    if (before && before.state !== 'pending') return before.state === 'active' ? before : undefined
    const after: EmailDomain = {
      ...(before ?? newDomain(domain, at)),
      state: 'active',
      activatedBy: 'catch',
      updatedAt: at,
    }
    if (before || (await countDomains(db, appId)) < MAX_DOMAINS) await writeDomain(db, appId, after)
    return after
  })
}

/** A domain without keys and without hosts of its own. */
export const newDomain = (domain: string, now: Date): EmailDomain => ({
  domain,
  state: 'pending',
  activatedBy: null,
  returnPathHost: null,
  trackingHost: null,
  dkimKeys: [],
  checks: {},
  checkedAt: null,
  createdAt: now,
  updatedAt: now,
})

/** The sender of messages that do not name one. */
export async function findDefaultFrom(
  { db }: Pick<SendingDomainContext, 'db'>,
  appId: AppId,
): Promise<{ name?: string; address: string } | undefined> {
  const settings = (await findApp(db, appId))?.emailSettings
  if (!settings?.from_address) return undefined
  return { address: settings.from_address, ...(settings.from_name !== null && { name: settings.from_name }) }
}
