// What every push service requires of a request, whoever created the browser behind it (RFC 8030, 8188, 8292).

import { createPublicKey } from 'node:crypto'
import { originOf, type SinkAnswer, type SinkRequest } from '../service.ts'
import { readJwt } from './jwt.ts'

export const webPushRefusal = (status: number, message: string, headers: Record<string, string> = {}): SinkAnswer => ({
  status,
  headers,
  body: JSON.stringify({ code: status, message }),
})

/**
 * Returns undefined for a request that a push service accepts. `vapidKey` is the key of the subscription, if it is
 * known.
 */
export function checkWebPush(request: SinkRequest, vapidKey: Buffer | undefined, now: Date): SinkAnswer | undefined {
  const { method, headers, body } = request
  if (method !== 'POST') return webPushRefusal(404, 'no such subscription')
  if (!/^\d+$/.test(headers.ttl ?? '')) return webPushRefusal(400, 'TTL')
  if (headers['content-encoding'] !== 'aes128gcm') return webPushRefusal(400, 'encoding')
  if (headers.topic !== undefined && !/^[\w-]{1,32}$/.test(headers.topic)) return webPushRefusal(400, 'topic')
  if (!['very-low', 'low', 'normal', 'high', undefined].includes(headers.urgency)) return webPushRefusal(400, 'urgency')
  if (body.length > 4096) return webPushRefusal(413, 'too large')
  return judgeVapid(request, vapidKey, now)
}

function judgeVapid({ headers }: SinkRequest, expected: Buffer | undefined, now: Date): SinkAnswer | undefined {
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(headers.authorization ?? '') ?? []
  const jwt = readJwt(token)
  if (!jwt) return webPushRefusal(401, 'vapid missing')
  const point = Buffer.from(key, 'base64url')
  if (expected && !point.equals(expected)) return webPushRefusal(403, 'another key')
  if (jwt.header.alg !== 'ES256' || !isSigned(jwt, point)) return webPushRefusal(401, 'signature')
  const { aud, exp, sub } = jwt.claims
  const nowSeconds = now.getTime() / 1000
  if (aud !== originOf(headers)) return webPushRefusal(401, 'audience')
  if (typeof exp !== 'number' || exp <= nowSeconds || exp > nowSeconds + 86_400) return webPushRefusal(401, 'expiry')
  if (!/^(mailto:|https:\/\/)/.test(String(sub))) return webPushRefusal(401, 'subject')
  return undefined
}

function isSigned(jwt: NonNullable<ReturnType<typeof readJwt>>, point: Buffer): boolean {
  const [x = '', y = ''] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
  try {
    return jwt.isSignedBy(createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' }))
  } catch {
    return false
  }
}
