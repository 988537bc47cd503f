// Finds the inbox provider of a recipient by the name of the domain, by its mail hosts, or by its top-level domain.

import { type InboxProvider, listedProviders, type ProviderList, readDomain } from './providers.ts'

/** `mx` lists the mail hosts of the domain, the preferred one first. */
export function classify(domain: string, mx: readonly string[] = [], list = listedProviders): InboxProvider {
  const name = readDomain(domain)
  if (name === undefined) return 'other'
  return classifyByName(name, list) ?? classifyByHosts(mx, list) ?? classifyByTld(name, list)
}

/** The part behind the last @, as used in DNS; undefined when it is not a domain. */
export const domainOf = (address: string) => readDomain(address.slice(address.lastIndexOf('@') + 1))

export const classifyByName = (domain: string, { domains, domainSuffixes }: ProviderList): InboxProvider | undefined =>
  domains.get(domain) ?? findLongestMatch(domain, domainSuffixes)

/** The first host that belongs to a provider decides. */
export function classifyByHosts(mx: readonly string[], { mxSuffixes }: ProviderList): InboxProvider | undefined {
  for (const host of mx) {
    const name = readDomain(host)
    const found = name && findLongestMatch(name, mxSuffixes)
    if (found && found !== 'gateway') return found
  }
  return undefined
}

export const classifyByTld = (domain: string, { tlds }: ProviderList): InboxProvider =>
  tlds.get(domain.slice(domain.lastIndexOf('.') + 1)) ?? 'other'

/** For `a.b.c`, returns the entry of `a.b.c`, `b.c` or `c`, whichever is found first. */
function findLongestMatch<Value>(name: string, suffixes: ReadonlyMap<string, Value>): Value | undefined {
  for (let at = 0; ; ) {
    const found = suffixes.get(at === 0 ? name : name.slice(at))
    if (found !== undefined) return found
    const dot = name.indexOf('.', at)
    if (dot < 0) return undefined
    at = dot + 1
  }
}
