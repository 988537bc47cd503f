// Checks the provider list against DNS: looks up the mail hosts of the domains that it lists by name.

import { classifyByHosts } from './classify.ts'
import type { HostsContext } from './hosts.ts'
import { type InboxProvider, listedProviders, type ProviderList } from './providers.ts'

export type ProviderCheck = {
  domain: string
  provider: InboxProvider
  /**
   * - agrees: the domain's hosts belong to the listed provider.
   * - differs: its hosts belong to `says`.
   * - unknown: its hosts are not listed.
   * - none: it has no mail hosts.
   * - unanswered: DNS gave no answer.
   */
  state: 'agrees' | 'differs' | 'unknown' | 'none' | 'unanswered'
  says?: InboxProvider
  hosts: readonly string[]
}

const AT_ONCE = 50

export async function checkProviders(
  resolver: HostsContext['resolver'],
  list: ProviderList = listedProviders,
): Promise<ProviderCheck[]> {
  const waiting = [...list.domains].reverse()
  const findings: ProviderCheck[] = []
  async function checkNext(): Promise<void> {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [domain, provider] = next
      const hosts = await resolver.mx(domain).catch(() => undefined)
      findings.push({ domain, provider, ...compare(provider, hosts, list) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, checkNext))
  return findings.sort((a, b) => (a.domain < b.domain ? -1 : 1))
}

function compare(provider: InboxProvider, hosts: readonly string[] | undefined, list: ProviderList) {
  if (hosts === undefined) return { state: 'unanswered' as const, hosts: [] }
  if (hosts.length === 0) return { state: 'none' as const, hosts }
  const says = classifyByHosts(hosts, list)
  if (says === undefined) return { state: 'unknown' as const, hosts }
  return says === provider ? { state: 'agrees' as const, hosts } : { state: 'differs' as const, says, hosts }
}
