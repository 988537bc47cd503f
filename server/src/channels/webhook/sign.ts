// Signatures according to Standard Webhooks (https://www.standardwebhooks.com): v1 is HMAC-SHA256 over id, time and
// body.

import { createHmac } from 'node:crypto'

export { newWebhookSecret } from '../../lib/secrets.ts'

const PREFIX = 'whsec_'
/** The standard requires 24 to 64 bytes. */
const [FEWEST_BYTES, MOST_BYTES] = [24, 64]

/** Returns the key in a secret, or undefined if the secret is invalid. */
export function readWebhookSecret(secret: string): Buffer | undefined {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length >= FEWEST_BYTES && key.length <= MOST_BYTES ? key : undefined
}

export type SignedWebhook = { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }

/**
 * Creates one signature for each key: while a secret is being replaced, receivers that know either of the two can
 * verify the request.
 */
export function signWebhook(keys: readonly Buffer[], id: string, at: Date, body: string): SignedWebhook {
  const seconds = String(Math.floor(at.getTime() / 1000))
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`,
  )
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures.join(' ') }
}
