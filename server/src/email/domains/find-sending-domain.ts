// Domains as mail is sent from them.

import { findApp, lockApp } from '../../apps/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { EmailContext } from '../context.ts'
import { findWay, isCaught } from '../find-route.ts'
import { type DkimKey, openKeys } from './dkim-keys.ts'
import { type EmailDomain, isTrusted, keysIn, MOST_DOMAINS, plainHost, returnPathOf } from './domain.ts'
import { countDomains, findDomain, lockDomain, writeDomain } from './store.ts'

export type SendingDomain = {
  domain: string
  returnPathHost: string
  /** Without a slash at its end. */
  trackingUrl: string
  /** Those that sign. */
  dkim: DkimKey[]
}

type Context = Pick<EmailContext, 'db' | 'now' | 'secrets' | 'mail' | 'home' | 'openedKeys'>

/** Undefined unless it is active. Where mail is only caught every domain is, and becomes so by being used. */
export async function findSendingDomain(
  ctx: Context,
  appId: AppId,
  domain: string,
): Promise<SendingDomain | undefined> {
  const name = plainHost(domain)
  if (name === undefined) return undefined
  const way = await findWay(ctx, appId)
  const known = await findDomain(ctx.db, appId, name)
  if (known && isTrusted(known)) return sendingDomain(ctx, appId, known)
  if (!isCaught(way) || known?.state === 'paused') return undefined
  const caught = known?.state === 'active' ? known : await activateCaught(ctx, appId, name)
  return caught && sendingDomain(ctx, appId, caught)
}

function sendingDomain(ctx: Context, appId: AppId, it: EmailDomain): SendingDomain {
  return {
    domain: it.domain,
    returnPathHost: returnPathOf(it),
    trackingUrl: it.trackingHost === null ? ctx.home.url : `https://${it.trackingHost}`,
    dkim: openKeys(ctx, appId, it.domain, keysIn(it, 'active')),
  }
}

/** Mail is caught from more domains than an app may have; those beyond are not written down. Undefined: it was paused meanwhile. */
export function activateCaught(
  { db, now }: Pick<Context, 'db' | 'now'>,
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
    if (before || (await countDomains(db, appId)) < MOST_DOMAINS) await writeDomain(db, appId, after)
    return after
  })
}

/** One without keys and records of its own. */
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

/** Who sends where a message does not say it. */
export async function defaultFrom(
  { db }: Pick<Context, 'db'>,
  appId: AppId,
): Promise<{ name?: string; address: string } | undefined> {
  const settings = (await findApp(db, appId))?.emailSettings
  if (!settings?.from_address) return undefined
  return { address: settings.from_address, ...(settings.from_name !== null && { name: settings.from_name }) }
}
