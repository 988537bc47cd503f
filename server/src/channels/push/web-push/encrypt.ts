// RFC 8291 and RFC 8188: encrypts a message that only the browser can read, in one record of aes128gcm.

import { createCipheriv, createECDH, createHmac, createSecretKey, type ECDH, randomBytes } from 'node:crypto'

/** The keys of a subscription: its public key as an uncompressed P-256 point, and its 16-byte secret. */
export type BrowserKeys = { p256dh: Buffer; auth: Buffer }
/** Only tests fix these values. */
export type FixedRandomness = { salt: Buffer; privateKey: Buffer }

const RECORD_BYTES = 4096
const HEADER_BYTES = 16 + 4 + 1 + 65
const DELIMITER_BYTES = 1
const TAG_BYTES = 16
export const MAX_PLAINTEXT_BYTES = RECORD_BYTES - HEADER_BYTES - DELIMITER_BYTES - TAG_BYTES

const KEY_INFO = Buffer.from('WebPush: info\0')
const CONTENT_KEY_INFO = Buffer.from('Content-Encoding: aes128gcm\0\x01')
const NONCE_INFO = Buffer.from('Content-Encoding: nonce\0\x01')
const FIRST_BLOCK = Buffer.from([1])
const LAST_RECORD = Buffer.from([2])

/**
 * HKDF takes five of these for each message. It is written out because hkdfSync is slower. The key object matters
 * because a plain buffer costs 20 µs more: Node first finds out, by an exception, that the buffer is not a key object.
 */
function hmac(key: Buffer, ...parts: Buffer[]): Buffer {
  const mac = createHmac('sha256', createSecretKey(key))
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** Throws if the browser's key is not a point on the curve. */
export function encryptWebPush(plain: Buffer, { p256dh, auth }: BrowserKeys, fixed?: FixedRandomness): Buffer {
  const ours = createECDH('prime256v1')
  const publicKey = fixed ? publicKeyOf(ours, fixed.privateKey) : ours.generateKeys()
  const salt = fixed?.salt ?? randomBytes(16)

  const shared = hmac(auth, ours.computeSecret(p256dh))
  const inputKey = hmac(shared, KEY_INFO, p256dh, publicKey, FIRST_BLOCK)
  const pseudoRandom = hmac(salt, inputKey)
  const contentKey = hmac(pseudoRandom, CONTENT_KEY_INFO).subarray(0, 16)
  const nonce = hmac(pseudoRandom, NONCE_INFO).subarray(0, 12)

  const header = Buffer.allocUnsafe(HEADER_BYTES)
  salt.copy(header, 0)
  header.writeUInt32BE(RECORD_BYTES, 16)
  header[20] = publicKey.length
  publicKey.copy(header, 21)
  const cipher = createCipheriv('aes-128-gcm', createSecretKey(contentKey), nonce)
  return Buffer.concat([header, cipher.update(plain), cipher.update(LAST_RECORD), cipher.final(), cipher.getAuthTag()])
}

function publicKeyOf(ecdh: ECDH, privateKey: Buffer): Buffer {
  ecdh.setPrivateKey(privateKey)
  return ecdh.getPublicKey()
}
