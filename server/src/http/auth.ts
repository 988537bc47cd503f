import { timingSafeEqual } from 'node:crypto'
import { BadKey } from '../lib/errors.ts'
import { type AddressList, addressList } from '../lib/networks.ts'
import { sha256 } from '../lib/secrets.ts'
import type { KeyRecord } from './route.ts'

const SCHEME = /^(?:key|basic|bearer)[ \t]+([\x21-\x7e]+)[ \t]*$/i

/**
 * Returns the secret after the scheme word. `Key`, `Basic` and `Bearer` mean the same: clients of several generations
 * write the same raw key after each of them. Returns undefined when the header is absent; an unreadable header is a bad
 * key.
 */
export function readSecret(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization === '') return undefined
  const secret = SCHEME.exec(authorization)?.[1]
  if (secret === undefined) throw new BadKey()
  return secret
}

/** Compares hashes, so that the time taken reveals neither length nor content of the expected secret. */
export const isSameSecret = (given: string, right: string) => timingSafeEqual(sha256(given), sha256(right))

// Weak, so that a parsed list is freed with the cached key record that it belongs to.
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
