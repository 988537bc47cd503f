import { randomBytes } from 'node:crypto'
import {
  type AdmCredentials,
  type AdmItem,
  openAdmChannel,
  writeAdmPush,
} from '../../../src/channels/push/adm/channel.ts'
import { virtualClock } from '../../../src/lib/clock.ts'
import { admRefusal } from '../../../src/sink/push/adm.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { startAdmSink } from '../../sinks/push.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { content, START } from '../push-content.ts'
import { http2Troubles } from './http.ts'

export const account: AdmCredentials = {
  clientId: 'amzn1.application-oa2-client.test',
  secret: 'the-secret-of-the-app-at-amazon',
}
export const newToken = () => `amzn1.adm-registration.v2.${randomBytes(24).toString('base64url')}`
export const anItem = (changes: Partial<AdmItem> = {}): AdmItem => ({
  appId: 'an app',
  token: newToken(),
  credentials: account,
  push: writeAdmPush(content()),
  ...changes,
})

export const troubles: Troubles<SinkFailure> = {
  ...http2Troubles,
  refused: admRefusal(400, 'InvalidData'),
  gone: admRefusal(400, 'Unregistered'),
}

export async function start({ deadlineMs, ...more }: StartOptions): Promise<Subject<AdmItem, SinkFailure>> {
  const clock = virtualClock(START)
  const provider = await startAdmSink(clock, account, more)
  return {
    provider: { ...provider, requests: () => provider.requests() - provider.tokensSold() },
    channel: openAdmChannel({ clock, route: provider.route, deadlineMs }),
    item: anItem,
    addressOf: ({ token }) => token,
    secretsOf: ({ token, credentials }) => [token, credentials.secret].filter((it) => it.length > 8),
    broken: () => [
      anItem({ token: '' }),
      anItem({ token: 'line\r\nbreak' }),
      anItem({ credentials: { ...account, secret: 'another-secret-altogether' } }),
      anItem({ push: writeAdmPush(content({ body: 'ü'.repeat(3_100) })) }),
      anItem({ push: writeAdmPush(content({ collapseId: 'x'.repeat(65) })) }),
    ],
  }
}
