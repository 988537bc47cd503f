// The representation of a sending domain, with the records that it needs and the result of checking each.

import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { EmailContext } from '../context.ts'
import { findEmailRoute, isCatchRoute, type ResolvedEmailRoute } from '../find-route.ts'
import { domainNotFound, type EmailDomain, isTrusted, returnPathOf } from './domain.ts'
import { checkKey, recordsOf } from './records.ts'
import type { DomainAnswer } from './schema.ts'
import { findDomain, findDomains } from './store.ts'

export async function viewDomains(ctx: EmailContext, appId: AppId): Promise<DomainAnswer[]> {
  const route = await findEmailRoute(ctx, appId)
  return (await findDomains(ctx.db, appId)).map((it) => domainObject(ctx, it, route))
}

export async function viewDomain(ctx: EmailContext, appId: AppId, domain: string): Promise<DomainAnswer> {
  const found = await findDomain(ctx.db, appId, domain)
  if (!found) throw domainNotFound()
  return domainObject(ctx, found, await findEmailRoute(ctx, appId))
}

function domainObject(ctx: EmailContext, it: EmailDomain, route: ResolvedEmailRoute): DomainAnswer {
  // A domain that is active only for caught mail is pending as soon as mail really leaves the server.
  const state = it.state === 'active' && !isTrusted(it) && !isCatchRoute(route) ? 'pending' : it.state
  return {
    domain: it.domain,
    state,
    activated_by: it.activatedBy,
    return_path_host: returnPathOf(it),
    tracking_host: it.trackingHost,
    dkim: it.dkimKeys.map(({ selector, algorithm, state, created_at }) => ({ selector, algorithm, state, created_at })),
    records: recordsOf(ctx, it, route).map((record) => {
      const check = ownProperty(it.checks, checkKey(record))
      return {
        purpose: record.purpose,
        type: record.type,
        name: record.name,
        value: record.value,
        required: record.isRequired,
        state: check?.state ?? 'unchecked',
        found: check?.found ?? null,
      }
    }),
    checked_at: it.checkedAt?.toISOString() ?? null,
    created_at: it.createdAt.toISOString(),
    updated_at: it.updatedAt.toISOString(),
  }
}
