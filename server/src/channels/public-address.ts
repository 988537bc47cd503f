// Decides which addresses belong to the public internet. Only those may be reached on behalf of a customer.

import { BlockList, isIP } from 'node:net'

/** IANA's registry of special-purpose IPv4 addresses, plus multicast and the reserved range at the end. */
const SPECIAL_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/**
 * All that IANA has allocated for unicast. IPv4-mapped, NAT64 (64:ff9b::), local and multicast addresses are outside of
 * it.
 */
const UNICAST_V6 = ['2000::/3']

/**
 * Exceptions within the unicast range: protocol assignments (Teredo, ORCHID, benchmarking), 6to4, and documentation.
 */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const specialV4 = listOf(SPECIAL_V4, 'ipv4')
const unicastV6 = listOf(UNICAST_V6, 'ipv6')
const specialV6 = listOf(SPECIAL_V6, 'ipv6')

/** IPv6 addresses that embed an IPv4 address are always refused, whatever they embed. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 4) return !specialV4.check(address, 'ipv4')
  if (version === 6)
    return !address.includes('%') && unicastV6.check(address, 'ipv6') && !specialV6.check(address, 'ipv6')
  return false
}

function listOf(networks: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), family)
  }
  return list
}
