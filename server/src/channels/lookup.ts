// The system resolves names on threads that the whole process shares. A name whose servers do not answer blocks a
// thread for many seconds, so concurrent lookups of the same name share one query.

import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createDnsResolver } from './dns.ts'

export type HostLookup = (name: string) => Promise<{ address: string; family: number }[]>

export function shareLookups(lookup: HostLookup): HostLookup {
  const underWay = new Map<string, ReturnType<HostLookup>>()
  return (name) => {
    const known = underWay.get(name)
    if (known) return known
    const asked = lookup(name).finally(() => underWay.delete(name))
    underWay.set(name, asked)
    return asked
  }
}

/** Finds all addresses of a name. */
export const lookUpAddresses = shareLookups((name) => systemLookup(name, { all: true }))

/** Uses the second lookup when the first finds no address. */
export const withFallback =
  (first: HostLookup, second: HostLookup): HostLookup =>
  async (name) => {
    const addresses = await first(name).catch(() => [])
    return addresses.length > 0 ? addresses : second(name)
  }

/**
 * For names that anybody can choose, such as hundreds of names whose servers do not answer. DNS is queried first and
 * without a thread, so that names found there never wait behind the others. Only those others go to the system, which
 * also knows its hosts file.
 */
export const lookUpPublicAddresses = shareLookups(withFallback(askDns(), lookUpAddresses))

function askDns(): HostLookup {
  const resolver = createDnsResolver()
  return async (name) => (await resolver.addresses(name)).map((address) => ({ address, family: isIP(address) }))
}
