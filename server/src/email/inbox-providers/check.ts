// Whether the list still says what DNS says: the domains that it knows by name are asked for their mail hosts.

import { classifyByHosts } from './classify.ts'
import type { HostsContext } from './hosts.ts'
import { type InboxProvider, listedProviders, type ProviderList } from './providers.ts'

export type ProviderCheck = {
  domain: string
  provider: InboxProvider
  /**
   * agrees: its hosts say the same. differs: they say `says`. unknown: they are on no list. none: it has none.
   * unanswered: nobody could say.
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
