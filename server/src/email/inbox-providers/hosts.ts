// Finds the mail hosts of recipients' domains. They are looked up before a message is sent and remembered for a day, so
// that sending never waits for DNS.

import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/db.ts'
import { classifyByHosts, classifyByName, classifyByTld, domainOf } from './classify.ts'
import {
  deleteOldHosts,
  findFreshHosts,
  findHostProviders,
  type ResolvedHost,
  saveFailures,
  saveHosts,
} from './host-store.ts'
import { type InboxProvider, listedProviders, type ProviderList, readDomain } from './providers.ts'

export type HostsContext = {
  db: Db
  clock: Clock
  resolver: {
    /**
     * Returns the mail hosts of a domain, the preferred one first, or an empty list when it has none. Rejects when DNS
     * gives no answer.
     */
    mx(domain: string): Promise<readonly string[]>
  }
  providers?: ProviderList | undefined
}

const ANSWER_TTL_MS = 86_400_000
const FAILURE_TTL_MS = 3_600_000
const RETENTION_MS = 30 * 86_400_000
/** For one domain, and for all domains together. */
const TIME_LIMITS = { oneMs: 2_000, allMs: 10_000 }
const AT_ONCE = 50
const ROWS_AT_ONCE = 10_000

/** Returns the inbox provider of each address, based on the lists and on earlier lookups. */
export async function classifyAddresses(
  db: Db,
  addresses: readonly string[],
  list = listedProviders,
): Promise<InboxProvider[]> {
  const domains = addresses.map(domainOf)
  const unclear = new Set<string>()
  for (const domain of domains) if (domain !== undefined && !classifyByName(domain, list)) unclear.add(domain)
  const byHosts = unclear.size === 0 ? new Map<string, InboxProvider>() : await findHostProviders(db, [...unclear])
  return domains.map((domain) =>
    domain === undefined
      ? 'other'
      : (classifyByName(domain, list) ?? byHosts.get(domain) ?? classifyByTld(domain, list)),
  )
}

/**
 * Looks up the mail hosts of those domains whose names do not identify a provider, unless a recent result exists. Takes
 * at most ten seconds, whatever DNS does; domains that were not reached by then are left for a later call.
 */
export async function lookUpHosts(
  { db, clock, resolver, providers = listedProviders }: HostsContext,
  domains: readonly string[],
  { oneMs, allMs } = TIME_LIMITS,
): Promise<void> {
  const now = clock.now()
  const names = domains.map(readDomain).filter((name) => name?.includes('.') && !classifyByName(name, providers))
  const unclear = [...new Set(names as string[])]
  if (unclear.length === 0) return
  const fresh = await findFreshHosts(db, unclear, now)
  const waiting = unclear.filter((domain) => !fresh.has(domain))
  const answers: ResolvedHost[] = []
  const failures: string[] = []
  const endsMs = performance.now() + allMs

  async function lookUpNext(): Promise<void> {
    for (let domain = waiting.pop(); domain !== undefined; domain = waiting.pop()) {
      const leftMs = endsMs - performance.now()
      if (leftMs <= 0) return
      const hosts = await settleWithin(resolver.mx(domain), Math.min(oneMs, leftMs))
      if (hosts === undefined) failures.push(domain)
      else answers.push({ domain, provider: classifyByHosts(hosts, providers) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lookUpNext))
  if (answers.length > 0) await saveHosts(db, answers, new Date(now.getTime() + ANSWER_TTL_MS))
  if (failures.length > 0) await saveFailures(db, failures, new Date(now.getTime() + FAILURE_TTL_MS))
}

/** Returns the value of the promise, or undefined when it rejects or takes too long. */
async function settleWithin<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([promise.catch(() => undefined), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

export async function deleteExpiredHosts(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - RETENTION_MS)
  while ((await deleteOldHosts(db, before, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
}
