// Names are looked up by the system, on threads that the whole process shares. A name whose servers do not answer holds one for many
// seconds: however many want the same name at a time, it is asked for once.

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

/** All addresses of a name. */
export const lookUpAddresses = shareLookups((name) => systemLookup(name, { all: true }))

/** Asks the second where the first knows no address. */
export const withFallback =
  (first: HostLookup, second: HostLookup): HostLookup =>
  async (name) => {
    const addresses = await first(name).catch(() => [])
    return addresses.length > 0 ? addresses : second(name)
  }

/**
 * For names that anybody can make up, hundreds of them at once, whose servers do not answer. DNS is asked without a thread, so that names
 * which it knows never wait behind those; the system is asked for the others, such as those of its own list of hosts.
 */
export const lookUpPublicAddresses = shareLookups(withFallback(askDns(), lookUpAddresses))

function askDns(): HostLookup {
  const resolver = createDnsResolver()
  return async (name) => (await resolver.addresses(name)).map((address) => ({ address, family: isIP(address) }))
}
