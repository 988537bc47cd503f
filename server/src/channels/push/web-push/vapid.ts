// RFC 8292: identifies the sender to push services. Signing costs as much as a fifth of a message, so one token is used
// for an origin for an hour.

import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { createLruMap } from '../../lru-map.ts'
import { signJwt, toUnixSeconds } from '../jwt.ts'

/**
 * Base64url: the public key as an uncompressed point, and the private scalar. `subject` is a mailto: or https: address
 * of the sender; Apple requires one.
 */
export type VapidKeys = { publicKey: string; privateKey: string; subject: string }

const VALID_SECONDS = 12 * 3600
const RENEW_SECONDS = 3600

/** Returns the `authorization` header for a key and an origin. Throws if the keys are not a P-256 pair. */
export function createVapidSigner(clock: Clock) {
  const keys = createLruMap<string, KeyObject>(1000)
  const tokens = createLruMap<string, { authorization: string; renewAt: number }>(10_000)

  function keyOf({ publicKey, privateKey }: VapidKeys): KeyObject {
    const name = `${publicKey} ${privateKey}`
    const known = keys.get(name)
    if (known) return known
    const point = Buffer.from(publicKey, 'base64url')
    const [x, y] = [point.subarray(1, 33), point.subarray(33, 65)].map((half) => half.toString('base64url'))
    const key = createPrivateKey({ key: { kty: 'EC', crv: 'P-256', d: privateKey, x, y }, format: 'jwk' })
    keys.set(name, key)
    return key
  }

  return (vapid: VapidKeys, origin: string): string => {
    const name = `${vapid.publicKey} ${vapid.privateKey} ${vapid.subject} ${origin}`
    const now = toUnixSeconds(clock.now())
    const known = tokens.get(name)
    if (known && now < known.renewAt) return known.authorization
    const claims = { aud: origin, exp: now + VALID_SECONDS, sub: vapid.subject }
    const token = signJwt({ typ: 'JWT', alg: 'ES256' }, claims, keyOf(vapid))
    const authorization = `vapid t=${token}, k=${vapid.publicKey}`
    tokens.set(name, { authorization, renewAt: now + RENEW_SECONDS })
    return authorization
  }
}
