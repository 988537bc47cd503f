import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'

/** By way of hex: Node produces a string faster than a buffer, and this runs for every request. */
export const sha256 = (text: string): Buffer => Buffer.from(hash('sha256', text, 'hex'), 'hex')

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** 52 letters of 5 bits: 260 bits, far above the 160 at which a fast hash is enough. */
const randomText = () => Array.from(randomBytes(52), (byte) => ALPHABET[byte & 31]).join('')

/**
 * Keys look like those of the original service, whose clients this server supports. They are shown once and stored as a
 * hash.
 */
export const newApiKey = (kind: 'app' | 'org') => `os_v2_${kind}_${randomText()}`
export const newSecretKey = () => randomBytes(32).toString('base64')

/** The secret that signs webhooks, in the format of Standard Webhooks. */
export const newWebhookSecret = () => `whsec_${randomBytes(32).toString('base64')}`

const splitKeys = (secretKeys: string) =>
  secretKeys
    .split(',')
    .map((text) => text.trim())
    .filter(Boolean)
const keyIdOf = (secretKey: string) => sha256(`carillon key id ${secretKey}`).subarray(0, 4).toString('hex')

/** The ids of these keys, as they appear in sealed text. */
export const sealingKeyIds = (secretKeys: string): string[] => splitKeys(secretKeys).map(keyIdOf)

export type SecretBox = { seal(plain: string, context: string): string; open(sealed: string, context: string): string }

/**
 * AES-256-GCM under a key derived from SECRET_KEY. Sealed text names the key it was sealed with, so that
 * `SECRET_KEY="new,old"` reads what the old key wrote and writes with the new one. The context (which field of which
 * row) is authenticated: a sealed value that is moved elsewhere does not open.
 */
export function secretBox(secretKeys: string): SecretBox {
  const keys = splitKeys(secretKeys).map((text) => ({
    id: keyIdOf(text),
    key: Buffer.from(hkdfSync('sha256', text, '', 'carillon sealed secrets', 32)),
  }))
  const current = keys[0]
  if (!current) throw new Error('SECRET_KEY is empty')
  return {
    seal(plain, context) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', current.key, iv).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return ['v1', current.id, Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')].join('.')
    },
    open(sealed, context) {
      const [version, id, payload = ''] = sealed.split('.')
      const found = keys.find((key) => key.id === id)
      if (version !== 'v1' || !found) throw new Error('sealed with a key that SECRET_KEY does not hold')
      const bytes = Buffer.from(payload, 'base64')
      const decipher = createDecipheriv('aes-256-gcm', found.key, bytes.subarray(0, 12))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
    },
  }
}
