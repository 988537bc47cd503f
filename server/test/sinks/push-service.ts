// A push service of browsers (RFC 8030, 8188, 8291, 8292) and the browsers behind it, which decrypt what they get.

import { createECDH, createPublicKey, randomBytes } from 'node:crypto'
import ece from 'http_ece'
import type { Clock } from '../../src/lib/clock.ts'
import { readJwt } from './jwt.ts'
import { type Provider, type ProviderSettings, type SinkAnswer, type SinkRequest, startProvider } from './provider.ts'

export type Browser = { endpoint: string; p256dh: string; auth: string; path: string }
export type Received = {
  path: string
  text: string
  ttl: number
  urgency: string | undefined
  topic: string | undefined
}

export type PushService = Provider & {
  origin: string
  /** A browser that lets only this key send. */
  subscribe(vapidPublicKey: string): Browser
  received: Received[]
}

const HOST = 'updates.push.example.com'

export async function startPushService(clock: Clock, settings: Partial<ProviderSettings> = {}): Promise<PushService> {
  const origin = `https://${settings.hosts?.[0] ?? HOST}`
  const browsers = new Map<string, { ecdh: ReturnType<typeof createECDH>; auth: Buffer; vapidPublicKey: string }>()
  const received: Received[] = []
  const refuse = (status: number, message: string): SinkAnswer => ({
    status,
    body: JSON.stringify({ code: status, message }),
  })

  function judgeVapid({ headers }: SinkRequest, expected: string): SinkAnswer | undefined {
    const [, token = '', key = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(headers.authorization ?? '') ?? []
    const jwt = readJwt(token)
    if (!jwt) return refuse(401, 'vapid missing')
    const point = Buffer.from(key, 'base64url')
    if (!point.equals(Buffer.from(expected, 'base64url'))) return refuse(403, 'another key')
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url')) as [
      string,
      string,
    ]
    const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
    if (jwt.header.alg !== 'ES256' || !jwt.isSignedBy(publicKey)) return refuse(401, 'signature')
    const { aud, exp, sub } = jwt.claims
    const nowSeconds = clock.now().getTime() / 1000
    if (aud !== origin) return refuse(401, 'audience')
    if (typeof exp !== 'number' || exp <= nowSeconds || exp > nowSeconds + 86_400) return refuse(401, 'expiry')
    if (!/^(mailto:|https:\/\/)/.test(String(sub))) return refuse(401, 'subject')
    return undefined
  }

  const provider = await startProvider({
    hosts: [HOST],
    addressOf: ({ path }) => path,
    judge(request) {
      const { method, path, headers, body } = request
      const browser = browsers.get(path)
      if (method !== 'POST' || !browser) return refuse(404, 'no such subscription')
      if (!/^\d+$/.test(headers.ttl ?? '')) return refuse(400, 'TTL')
      if (headers['content-encoding'] !== 'aes128gcm') return refuse(400, 'encoding')
      if (headers.topic !== undefined && !/^[\w-]{1,32}$/.test(headers.topic)) return refuse(400, 'topic')
      if (!['very-low', 'low', 'normal', 'high', undefined].includes(headers.urgency)) return refuse(400, 'urgency')
      if (body.length > 4096) return refuse(413, 'too large')
      return judgeVapid(request, browser.vapidPublicKey)
    },
    accept({ path, headers, body }) {
      const { ecdh, auth } = browsers.get(path) as NonNullable<ReturnType<typeof browsers.get>>
      const text = ece
        .decrypt(body, { version: 'aes128gcm', privateKey: ecdh, authSecret: auth.toString('base64url') })
        .toString('utf8')
      received.push({ path, text, ttl: Number(headers.ttl), urgency: headers.urgency, topic: headers.topic })
      return { status: 201, headers: { location: `${origin}/m/${received.length}` } }
    },
    ...settings,
  })
  return {
    ...provider,
    origin,
    received,
    subscribe(vapidPublicKey) {
      const ecdh = createECDH('prime256v1')
      const auth = randomBytes(16)
      const path = `/wpush/v2/${randomBytes(16).toString('base64url')}`
      browsers.set(path, { ecdh, auth, vapidPublicKey })
      const p256dh = ecdh.generateKeys('base64url')
      return { endpoint: `${origin}${path}`, p256dh, auth: auth.toString('base64url'), path }
    },
  }
}
