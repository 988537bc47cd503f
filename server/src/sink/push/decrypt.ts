// RFC 8291 and RFC 8188 from the browser's side: decrypts a message, in one record of aes128gcm.

import { createDecipheriv, createHmac, type ECDH } from 'node:crypto'

const hmac = (key: Buffer, ...parts: Buffer[]) => createHmac('sha256', key).update(Buffer.concat(parts)).digest()
const info = (text: string) => Buffer.from(`${text}\0`)
const ONE = Buffer.from([1])
const TAG_BYTES = 16

/**
 * `browser` holds the private key of the subscription. Throws if the message was encrypted for another browser, or was
 * modified.
 */
export function decrypt(message: Buffer, browser: ECDH, auth: Buffer): Buffer {
  const salt = message.subarray(0, 16)
  const keyEnd = 21 + (message[20] ?? 0)
  const senderKey = message.subarray(21, keyEnd)
  const record = message.subarray(keyEnd)

  const shared = hmac(auth, browser.computeSecret(senderKey))
  const inputKey = hmac(shared, info('WebPush: info'), browser.getPublicKey(), senderKey, ONE)
  const pseudoRandom = hmac(salt, inputKey)
  const contentKey = hmac(pseudoRandom, info('Content-Encoding: aes128gcm'), ONE).subarray(0, 16)
  const nonce = hmac(pseudoRandom, info('Content-Encoding: nonce'), ONE).subarray(0, 12)

  const decipher = createDecipheriv('aes-128-gcm', contentKey, nonce)
  decipher.setAuthTag(record.subarray(-TAG_BYTES))
  const padded = Buffer.concat([decipher.update(record.subarray(0, -TAG_BYTES)), decipher.final()])
  // The last record ends with a 2, followed by zeros.
  const end = padded.findLastIndex((byte) => byte !== 0)
  if (padded[end] !== 2) throw new Error('not the last record')
  return padded.subarray(0, end)
}
