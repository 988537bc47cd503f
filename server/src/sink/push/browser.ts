// A browser that is subscribed, kept nowhere: its private key, its secret and the one key that may send to it are its address.
// So there may be a million of them, and those of yesterday's process are known to today's.

import { createECDH, type ECDH, randomBytes } from 'node:crypto'

/** As a browser hands it to a website. */
export type BrowserSubscription = { endpoint: string; p256dh: string; auth: string; path: string }

export type Browser = {
  ecdh: ECDH
  auth: Buffer
  /** The only key that may send to it; undefined where every key may. */
  vapidPublicKey: Buffer | undefined
}

const PREFIX = '/wpush/v2/'
const [KEY_BYTES, AUTH_BYTES, POINT_BYTES] = [32, 16, 65]

export function createBrowserSubscription(origin: string, vapidPublicKey = ''): BrowserSubscription {
  const ecdh = createECDH('prime256v1')
  const p256dh = ecdh.generateKeys('base64url')
  const auth = randomBytes(AUTH_BYTES)
  // A scalar may begin with zeros, which are left out of it.
  const key = Buffer.concat([Buffer.alloc(KEY_BYTES), ecdh.getPrivateKey()]).subarray(-KEY_BYTES)
  const address = Buffer.concat([key, auth, Buffer.from(vapidPublicKey, 'base64url')])
  const path = PREFIX + address.toString('base64url')
  return { endpoint: origin + path, p256dh, auth: auth.toString('base64url'), path }
}

/** Undefined when the path is none of ours. */
export function readBrowser(path: string): Browser | undefined {
  const text = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : ''
  const address = Buffer.from(text, 'base64url')
  const rest = address.length - KEY_BYTES - AUTH_BYTES
  if (address.toString('base64url') !== text || (rest !== 0 && rest !== POINT_BYTES)) return undefined
  const ecdh = createECDH('prime256v1')
  try {
    ecdh.setPrivateKey(address.subarray(0, KEY_BYTES))
  } catch {
    return undefined
  }
  return {
    ecdh,
    auth: address.subarray(KEY_BYTES, KEY_BYTES + AUTH_BYTES),
    vapidPublicKey: rest === 0 ? undefined : address.subarray(-POINT_BYTES),
  }
}
