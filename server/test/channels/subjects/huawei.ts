import { randomBytes } from 'node:crypto'
import { type HuaweiItem, openHuaweiChannel } from '../../../src/channels/push/huawei/channel.ts'
import type { HuaweiCredentials } from '../../../src/channels/push/huawei/credentials.ts'
import { writeHuaweiPush } from '../../../src/channels/push/huawei/payload.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import { huaweiRefusal } from '../../../src/sink/push/huawei.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { startHuaweiSink } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export const account: HuaweiCredentials = {
  appId: '100000001',
  secret: 'the-secret-of-the-app-at-huawei',
  projectId: '7700001',
  packageName: 'com.example.bells',
  defaultTitle: 'Carillon',
}
export const newToken = () => randomBytes(60).toString('base64url')
export const anItem = (changes: Partial<HuaweiItem> = {}): HuaweiItem => ({
  appId: 'an app',
  token: newToken(),
  credentials: account,
  push: writeHuaweiPush(content()),
  ...changes,
})

export const troubles: Troubles<SinkFailure> = {
  ...http2Troubles,
  refused: huaweiRefusal(400, '80100003'),
  gone: huaweiRefusal(400, '80300007'),
}

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<HuaweiItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startHuaweiSink(clock, account, more)
  return {
    // Buying the token is no request for anybody.
    provider: { ...provider, requests: () => provider.requests() - provider.tokensSold() },
    channel: openHuaweiChannel({ clock, route: provider.route, deadlineMs }),
    item: anItem,
    addressOf: ({ token }) => token,
    secretsOf: ({ token, credentials }) => [token, credentials.secret].filter((it) => it.length > 8),
    broken: () => [
      anItem({ token: '' }),
      anItem({ token: 'line\r\nbreak' }),
      anItem({ credentials: { ...account, secret: 'another-secret-altogether' } }),
      anItem({ credentials: { ...account, projectId: '../other' } }),
      anItem({ push: writeHuaweiPush(content({ body: 'ü'.repeat(2_100) })) }),
    ],
  }
}
