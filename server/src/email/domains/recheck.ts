import type { EmailContext } from '../context.ts'
import { findCheckedDomainsAcrossApps } from './store.ts'
import { recheckDomain } from './verify.ts'

const AT_ONCE = 8

/** Every active domain of every app, a few at a time. One that cannot be looked at holds up nobody. */
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
