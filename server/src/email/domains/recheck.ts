import type { EmailContext } from '../context.ts'
import { findCheckedDomainsAcrossApps } from './store.ts'
import { recheckDomain } from './verify.ts'

const AT_ONCE = 8

/** Checks every active domain of every app, a few at a time. A domain whose check fails does not delay the others. */
export async function recheckDomains(ctx: EmailContext, signal?: AbortSignal): Promise<void> {
  const entries = (await findCheckedDomainsAcrossApps(ctx.db)).values()
  const work = async () => {
    for (const { appId, domain } of entries) {
      signal?.throwIfAborted()
      await recheckDomain(ctx, appId, domain)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
