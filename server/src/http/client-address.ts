import type { IncomingMessage } from 'node:http'
import { addressList } from '../lib/networks.ts'

/** Returns the address that a request comes from. */
export type AddressOf = (request: IncomingMessage) => string

const remoteAddress: AddressOf = ({ socket }) => socket.remoteAddress ?? ''

/**
 * Behind proxies, the caller is the last address in X-Forwarded-For that is not a trusted proxy: everything to the left
 * of it can be forged. `true` trusts every address and so takes the first.
 */
export function createAddressOf(trustProxy: boolean | string): AddressOf {
  if (trustProxy === false) return remoteAddress
  const proxies = typeof trustProxy === 'string' ? addressList(trustProxy.split(',').map((it) => it.trim())) : undefined
  const isTrusted = (address: string) => proxies === undefined || proxies.includes(address)
  return (request) => {
    const header = request.headers['x-forwarded-for']
    const named = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').map((it) => it.trim())
    let address = remoteAddress(request)
    for (const before of named.reverse()) {
      if (before === '' || !isTrusted(address)) break
      address = before
    }
    return address
  }
}
