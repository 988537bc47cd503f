// Addresses and networks, for the allowlists of keys.

import { BlockList, isIP } from 'node:net'

export type Network = { address: string; prefix: number; family: 'ipv4' | 'ipv6' }

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** A socket that listens on IPv6 sees IPv4 callers as ::ffff:1.2.3.4; allowlists are written in plain IPv4. */
export const plainAddress = (address: string) => MAPPED.exec(address)?.[1] ?? address

/** `10.0.0.0/8`, `2001:db8::/32`, or a single address. Undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [given = '', digits, ...rest] = text.split('/')
  if (rest.length > 0) return undefined
  const mapped = MAPPED.exec(given) !== null
  const address = plainAddress(given)
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  if (digits === undefined) return { address, prefix: bits, family: version === 4 ? 'ipv4' : 'ipv6' }
  if (!/^\d{1,3}$/.test(digits)) return undefined
  const prefix = mapped ? Number(digits) - 96 : Number(digits)
  if (prefix < 0 || prefix > bits) return undefined
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' }
}

export type AddressList = { includes(address: string): boolean }

/** Entries that cannot be parsed admit nobody, so that a damaged list does not open access. */
export function addressList(networks: readonly string[]): AddressList {
  const list = new BlockList()
  for (const text of networks) {
    const network = parseNetwork(text)
    if (network) list.addSubnet(network.address, network.prefix, network.family)
  }
  return {
    includes(given) {
      const address = plainAddress(given)
      const version = isIP(address)
      return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
    },
  }
}

/**
 * The addresses that one subscriber of an internet provider holds: an IPv4 address, or the /64 of an IPv6 one. A limit
 * per single IPv6 address would limit nothing, because each line has 2^64 of them.
 */
export function addressGroup(given: string): string {
  const address = plainAddress(given)
  if (isIP(address) !== 6) return address
  const [head = '', tail] = (address.split('%')[0] as string).toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
