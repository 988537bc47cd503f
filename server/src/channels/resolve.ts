// Names are looked up by the system, on threads that the whole process shares. A name whose servers do not answer holds one for many
// seconds: however many want the same name at a time, it is asked for once.

import { lookup as systemLookup } from 'node:dns/promises'

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
