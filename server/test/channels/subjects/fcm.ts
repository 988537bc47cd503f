import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { GoogleServiceAccount } from '../../../src/channels/push/fcm/access-token.ts'
import { type FcmItem, openFcmChannel } from '../../../src/channels/push/fcm/channel.ts'
import { writeFcmPush } from '../../../src/channels/push/fcm/payload.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import { fcmRefusal } from '../../../src/sink/push/fcm.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { rsaPem } from '../../credentials.ts'
import { startFcmSink } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export const account: GoogleServiceAccount = {
  projectId: 'test-project',
  clientEmail: 'push@test-project.iam.gserviceaccount.com',
  privateKey: rsaPem(),
}
export const newToken = () => `device:${randomBytes(24).toString('base64url')}`
export const anItem = (changes: Partial<FcmItem> = {}): FcmItem => ({
  appId: 'an app',
  token: newToken(),
  credentials: account,
  push: writeFcmPush(content()),
  ...changes,
})
const otherKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

export const troubles: Troubles<SinkFailure> = {
  ...http2Troubles,
  refused: fcmRefusal(400, 'INVALID_ARGUMENT', { field: 'message.data' }),
  gone: fcmRefusal(404, 'NOT_FOUND', { code: 'UNREGISTERED' }),
}

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<FcmItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startFcmSink(clock, account, more)
  return {
    // Buying the token is no request for anybody.
    provider: { ...provider, requests: () => provider.requests() - provider.tokensSold() },
    channel: openFcmChannel({ clock, route: provider.route, deadlineMs }),
    item: anItem,
    addressOf: ({ token }) => token,
    secretsOf: ({ token, credentials }) =>
      [token, credentials.privateKey, credentials.privateKey.split('\n')[1] ?? ''].filter((it) => it.length > 8),
    broken: () => [
      anItem({ token: '' }),
      anItem({ credentials: { ...account, privateKey: 'not a key of any kind' } }),
      anItem({ credentials: { ...account, privateKey: otherKey() } }),
      anItem({ credentials: { ...account, projectId: '../other' } }),
      anItem({ push: writeFcmPush(content({ body: 'ü'.repeat(2_100) })) }),
    ],
  }
}
