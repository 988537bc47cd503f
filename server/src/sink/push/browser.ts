// A subscribed browser that is stored nowhere: its address contains its private key, its secret, and the one key that
// may send to it. So there can be millions of them, and those from an earlier process keep working.

import { createECDH, type ECDH, randomBytes } from 'node:crypto'

/** The subscription as a browser gives it to a website. */
export type BrowserSubscription = { endpoint: string; p256dh: string; auth: string; path: string }

export type Browser = {
  ecdh: ECDH
  auth: Buffer
  /** The only key that may send to the browser; undefined if every key may. */
  vapidPublicKey: Buffer | undefined
}

const PREFIX = '/wpush/v2/'
const [KEY_BYTES, AUTH_BYTES, POINT_BYTES] = [32, 16, 65]

export function createBrowserSubscription(origin: string, vapidPublicKey = ''): BrowserSubscription {
  const ecdh = createECDH('prime256v1')
  const p256dh = ecdh.generateKeys('base64url')
  const auth = randomBytes(AUTH_BYTES)
  // Leading zeros are missing from the private key, so it is padded.
  const key = Buffer.concat([Buffer.alloc(KEY_BYTES), ecdh.getPrivateKey()]).subarray(-KEY_BYTES)
  const address = Buffer.concat([key, auth, Buffer.from(vapidPublicKey, 'base64url')])
  const path = PREFIX + address.toString('base64url')
  return { endpoint: origin + path, p256dh, auth: auth.toString('base64url'), path }
}

/** Returns undefined if the path does not belong to one of our browsers. */
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
