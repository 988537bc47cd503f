import { randomBytes } from 'node:crypto'
import { type ApnsCredentials, type ApnsItem, openApnsChannel } from '../../../src/channels/push/apns/channel.ts'
import { writeApnsPush } from '../../../src/channels/push/apns/payload.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import { type ApnsAccount, apnsRefusal } from '../../../src/sink/push/apns.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { aP8, rsaPem } from '../../credentials.ts'
import { startApnsSink } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export const account: ApnsAccount = {
  teamId: 'TEAM123456',
  keyId: 'KEY1234567',
  key: aP8().pem,
  topic: 'com.example.app',
}
export const credentials = { kind: 'token', environment: 'production', ...account } satisfies ApnsCredentials
export const newToken = () => randomBytes(32).toString('hex')
export const anItem = (changes: Partial<ApnsItem> = {}): ApnsItem => ({
  appId: 'an app',
  token: newToken(),
  credentials,
  push: writeApnsPush(content()),
  ...changes,
})

export const troubles: Troubles<SinkFailure> = {
  ...http2Troubles,
  refused: apnsRefusal(400, 'BadCollapseId'),
  gone: apnsRefusal(410, 'Unregistered'),
}

const noPair: ApnsCredentials = {
  kind: 'certificate',
  environment: 'production',
  key: rsaPem(),
  certificate: 'none at all',
  topic: null,
}

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<ApnsItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startApnsSink(clock, account, more)
  return {
    provider,
    channel: openApnsChannel({ clock, route: provider.route, deadlineMs }),
    item: anItem,
    addressOf: ({ token }) => token,
    secretsOf: ({ token, credentials }) =>
      [token, credentials.key, credentials.key.split('\n')[1] ?? ''].filter((it) => it.length > 8),
    broken: () => [
      anItem({ token: 'no token at all' }),
      anItem({ token: '' }),
      anItem({ token: '../../3/device/abcdef01' }),
      anItem({ credentials: { ...credentials, key: 'not a key of any kind' } }),
      anItem({ credentials: { ...credentials, key: rsaPem() } }),
      anItem({ credentials: { ...credentials, key: aP8().pem } }),
      anItem({ credentials: { ...credentials, topic: 'com.example.other' } }),
      anItem({ credentials: noPair }),
      anItem({ push: { ...writeApnsPush(content()), body: 'x'.repeat(4_097) } }),
    ],
  }
}
