import { randomBytes } from 'node:crypto'
import { openWnsChannel, type WnsCredentials, type WnsItem } from '../../../src/channels/push/wns/channel.ts'
import { writeWnsPush } from '../../../src/channels/push/wns/payload.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import { wnsRefusal } from '../../../src/sink/push/wns.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { startWnsSink, WNS_HOST } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export const account: WnsCredentials = {
  clientId: 'ms-app://s-1-15-2-1234-5678',
  secret: 'the-secret-of-the-app-at-microsoft',
}
export const newChannelUri = () => `https://${WNS_HOST}/w/?token=${randomBytes(24).toString('base64url')}`
export const anItem = (changes: Partial<WnsItem> = {}): WnsItem => ({
  appId: 'an app',
  channelUri: newChannelUri(),
  credentials: account,
  push: writeWnsPush(content()),
  ...changes,
})

export const troubles: Troubles<SinkFailure> = { ...http2Troubles, refused: wnsRefusal(400), gone: wnsRefusal(410) }

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<WnsItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startWnsSink(clock, account, more)
  return {
    provider: { ...provider, requests: () => provider.requests() - provider.tokensSold() },
    channel: openWnsChannel({ clock, route: provider.route, deadlineMs }),
    item: anItem,
    addressOf: ({ channelUri }) => channelUri,
    secretsOf: ({ channelUri, credentials }) => [channelUri, credentials.secret].filter((it) => it.length > 8),
    broken: () => [
      anItem({ channelUri: '' }),
      anItem({ channelUri: 'https://evil.example/?token=1' }),
      anItem({ channelUri: newChannelUri().replace('https:', 'http:') }),
      anItem({ credentials: { ...account, secret: 'another-secret-altogether' } }),
      anItem({ push: writeWnsPush(content({ body: 'ü'.repeat(2_500) })) }),
    ],
  }
}
