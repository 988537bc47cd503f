// Web push: each browser is reached through its vendor's push service (RFC 8030). The address comes from the browser,
// so an answer only ever concerns that subscription, never the app.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, ChannelOutcome } from '../../channel.ts'
import { secondsLeft } from '../content.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { createPushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'
import { type BrowserKeys, encryptWebPush, MAX_PLAINTEXT_BYTES } from './encrypt.ts'
import type { WebPush } from './payload.ts'
import { createVapidSigner, type VapidKeys } from './vapid.ts'

export type WebPushItem = {
  appId: AppId
  endpoint: string
  /** As the browser gave them: base64 in either alphabet. */
  p256dh: string
  auth: string
  vapid: VapidKeys
  push: WebPush
}

export type WebPushSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

/**
 * Shorter than for other providers: anybody can subscribe with a slow address, which delays everything that is sent
 * with it.
 */
const DEADLINE_MS = 15_000

export function openWebPushChannel({ clock, ...settings }: WebPushSettings): Channel<WebPushItem> {
  const client = createPushHttpClient({ deadlineMs: DEADLINE_MS, ...settings, allowsHttp1: true })
  const authorize = createVapidSigner(clock)

  async function sendOne({ appId, endpoint, p256dh, auth, vapid, push }: WebPushItem): Promise<ChannelOutcome> {
    const url = readEndpoint(endpoint)
    const keys = readKeys(p256dh, auth)
    if (!url || !keys) return { kind: 'gone', reason: 'subscription not valid' }
    if (push.plain.length > MAX_PLAINTEXT_BYTES) return { kind: 'failed', reason: 'too large' }
    const body = tried(() => encryptWebPush(push.plain, keys))
    if (!body) return { kind: 'gone', reason: 'subscription not valid' }
    const authorization = tried(() => authorize(vapid, url.origin))
    if (!authorization) return { kind: 'misconfigured', reason: 'keys for web push not usable' }
    const reply = await client.request({
      appId,
      origin: url.origin,
      path: url.pathname + url.search,
      headers: {
        authorization,
        'content-encoding': 'aes128gcm',
        'content-type': 'application/octet-stream',
        ttl: String(secondsLeft(push.expiresAt, clock.now())),
        urgency: push.urgency,
        ...(push.topic !== undefined && { topic: push.topic }),
      },
      body,
    })
    return interpretWebPushResponse(reply, clock.now())
  }

  return createPushChannel({ sendOne, closeConnections: () => client.close(), itemsPerTurn: 16 })
}

function interpretWebPushResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status } = reply
  const reason = `status ${status}`
  if (status >= 200 && status < 300) return { kind: 'sent' }
  if (status === 404 || status === 410) return { kind: 'gone', reason }
  if (status === 413) return { kind: 'failed', reason: 'too large' }
  if (status === 408 || status === 429 || status >= 500) {
    const afterMs = retryAfterMs(reply, now)
    return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
  }
  // The subscription was created for another key, or the service rejects ours.
  if (status === 401 || status === 403) return { kind: 'failed', reason: 'key refused' }
  return { kind: 'failed', reason }
}

function readEndpoint(endpoint: string): URL | undefined {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  return url?.protocol === 'https:' && url.username === '' && url.password === '' ? url : undefined
}

function readKeys(p256dh: string, auth: string): BrowserKeys | undefined {
  // Node reads both alphabets of base64, whichever name it is given.
  const keys = { p256dh: Buffer.from(p256dh, 'base64url'), auth: Buffer.from(auth, 'base64url') }
  return keys.p256dh.length === 65 && keys.auth.length === 16 ? keys : undefined
}

function tried<Value>(make: () => Value): Value | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
