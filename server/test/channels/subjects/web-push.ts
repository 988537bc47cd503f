import { generateKeyPairSync } from 'node:crypto'
import { openWebPushChannel, type WebPushItem } from '../../../src/channels/push/web-push/channel.ts'
import { type WebPush, writeWebPush } from '../../../src/channels/push/web-push/payload.ts'
import type { VapidKeys } from '../../../src/channels/push/web-push/vapid.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import type { BrowserSubscription } from '../../../src/sink/push/browser.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { startPushService } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export function newVapid(): VapidKeys {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  return { publicKey: point.toString('base64url'), privateKey: d, subject: 'mailto:push@example.com' }
}

export const vapid = newVapid()
export const itemFor = (
  { endpoint, p256dh, auth }: BrowserSubscription,
  push: WebPush = writeWebPush(content()),
): WebPushItem => ({
  appId: 'an app',
  endpoint,
  p256dh,
  auth,
  vapid,
  push,
})

export const troubles: Troubles<SinkFailure> = { ...http2Troubles, refused: { status: 400 }, gone: { status: 410 } }

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<WebPushItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startPushService(clock, more)
  const item = () => itemFor(provider.subscribe(vapid.publicKey))
  return {
    provider,
    channel: openWebPushChannel({ clock, route: provider.route, deadlineMs }),
    item,
    addressOf: ({ endpoint }) => (URL.canParse(endpoint) ? new URL(endpoint).pathname : endpoint),
    secretsOf: ({ endpoint, auth, p256dh, vapid }) =>
      [endpoint.split('/').at(-1) as string, auth, p256dh, vapid.privateKey].filter((it) => it.length > 8),
    broken: () => [
      { ...item(), endpoint: 'no address' },
      { ...item(), endpoint: 'http://updates.push.example.com/plain-text' },
      { ...item(), endpoint: 'https://127.0.0.1/inside-of-the-network' },
      { ...item(), endpoint: 'https://user:password1@updates.push.example.com/x' },
      { ...item(), p256dh: '' },
      { ...item(), p256dh: Buffer.alloc(65, 4).toString('base64url') },
      { ...item(), auth: 'short' },
      { ...item(), vapid: { ...vapid, privateKey: 'AAAA' } },
      { ...item(), vapid: { ...vapid, publicKey: 'AAAA' } },
      { ...item(), push: { ...writeWebPush(content()), plain: Buffer.alloc(5_000) } },
    ],
  }
}
