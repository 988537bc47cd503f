import { timingSafeEqual } from 'node:crypto'
import { BadKey } from '../lib/errors.ts'
import { type AddressList, addressList } from '../lib/networks.ts'
import { sha256 } from '../lib/secrets.ts'
import type { KeyRecord } from './route.ts'

const SCHEME = /^(?:key|basic|bearer)[ \t]+([\x21-\x7e]+)[ \t]*$/i

/**
 * The secret behind the scheme word. `Key`, `Basic` and `Bearer` are one: clients of several generations write the same
 * raw key behind each of them. Undefined when the header is absent; a header that cannot be read is a bad key.
 */
export function readSecret(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization === '') return undefined
  const secret = SCHEME.exec(authorization)?.[1]
  if (secret === undefined) throw new BadKey()
  return secret
}

/** Hashed first, so that neither length nor content of the right answer shows in the time taken. */
export const isSameSecret = (given: string, right: string) => timingSafeEqual(sha256(given), sha256(right))

// Key records live as long as the cache that holds them; their lists go with them.
const lists = new WeakMap<KeyRecord, AddressList>()

export function isAllowedAddress(key: KeyRecord, address: string): boolean {
  if (key.ipAllowlist.length === 0) return true
  let list = lists.get(key)
  if (!list) {
    list = addressList(key.ipAllowlist)
    lists.set(key, list)
  }
  return list.includes(address)
}
