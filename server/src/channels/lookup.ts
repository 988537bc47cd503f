// Names are looked up by the system, on threads that the whole process shares. A name whose servers do not answer holds one for many
// seconds: however many want the same name at a time, it is asked for once.

import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createResolver } from './dns.ts'

export type Lookup = (name: string) => Promise<{ address: string; family: number }[]>

export function asking(lookup: Lookup): Lookup {
  const underWay = new Map<string, ReturnType<Lookup>>()
  return (name) => {
    const known = underWay.get(name)
    if (known) return known
    const asked = lookup(name).finally(() => underWay.delete(name))
    underWay.set(name, asked)
    return asked
  }
}

/** All addresses of a name. */
export const resolve = asking((name) => systemLookup(name, { all: true }))

/** Asks the second where the first knows no address. */
export const inTurn =
  (first: Lookup, second: Lookup): Lookup =>
  async (name) => {
    const addresses = await first(name).catch(() => [])
    return addresses.length > 0 ? addresses : second(name)
  }

/**
 * For names that anybody can make up, hundreds of them at once, whose servers do not answer. DNS is asked without a thread, so that names
 * which it knows never wait behind those; the system is asked for the others, such as those of its own list of hosts.
 */
export const resolvePublic = asking(inTurn(askDns(), resolve))

function askDns(): Lookup {
  const resolver = createResolver()
  return async (name) => (await resolver.addresses(name)).map((address) => ({ address, family: isIP(address) }))
}
