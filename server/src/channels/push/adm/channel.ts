// Amazon Device Messaging: Fire OS.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, ChannelOutcome } from '../../channel.ts'
import { nearestPriority, type PushContent, secondsLeft } from '../content.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { writeAndroidData } from '../fcm/android-data.ts'
import { createPushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { createClientCredentialsTokens } from '../oauth/client-credentials.ts'
import { sendAuthorized } from '../oauth/send-authorized.ts'
import { interpretAdmResponse, isAdmTokenRefused } from './interpret-response.ts'

export type AdmCredentials = { clientId: string; secret: string }

export type AdmPush = {
  data: Readonly<Record<string, string>>
  priority: 'high' | 'normal'
  expiresAt: Date
  consolidationKey: string | undefined
}

/** `token`: the registration id of the app on the device. */
export type AdmItem = { appId: AppId; token: string; credentials: AdmCredentials; push: AdmPush }

export type AdmSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

const ORIGIN = 'https://api.amazon.com'
const TOKEN_URL = `${ORIGIN}/auth/o2/token`
const SCOPE = 'messaging:push'
const MOST_DATA_BYTES = 6144
const [LEAST_EXPIRY_SECONDS, MOST_EXPIRY_SECONDS] = [60, 2_678_400]

/** Called once for all recipients of the same content. */
export const writeAdmPush = (content: PushContent): AdmPush => ({
  data: writeAndroidData(content),
  priority: nearestPriority(content.priority, [5, 10]) === 10 ? 'high' : 'normal',
  expiresAt: content.expiresAt,
  consolidationKey: content.collapseId,
})

export function openAdmChannel({ clock, ...settings }: AdmSettings): Channel<AdmItem> {
  const client = createPushHttpClient({ ...settings, allowsHttp1: true })
  const accessFor = createClientCredentialsTokens(clock, client, TOKEN_URL, SCOPE)

  async function sendOne({ appId, token, credentials, push }: AdmItem): Promise<ChannelOutcome> {
    if (!/^[\x21-\x7e]+$/.test(token)) return { kind: 'gone', reason: 'token not valid' }
    if (Buffer.byteLength(JSON.stringify(push.data)) > MOST_DATA_BYTES) return { kind: 'failed', reason: 'too large' }
    const body = bodyOf(push, clock.now())
    return sendAuthorized({
      appId,
      account: credentials,
      getAccessToken: accessFor,
      post: (accessToken) =>
        client.request({
          appId,
          origin: ORIGIN,
          path: `/messaging/registrations/${encodeURIComponent(token)}/messages`,
          headers: {
            authorization: `Bearer ${accessToken}`,
            'content-type': 'application/json',
            accept: 'application/json',
            'x-amzn-type-version': 'com.amazon.device.messaging.ADMMessage@1.0',
            'x-amzn-accept-type': 'com.amazon.device.messaging.ADMSendResult@1.0',
          },
          body,
        }),
      isUnauthenticated: isAdmTokenRefused,
      interpret: (reply) => interpretAdmResponse(reply, clock.now()),
    })
  }

  return createPushChannel({ sendOne, closeConnections: () => client.close(), itemsPerTurn: 100 })
}

function bodyOf({ data, priority, expiresAt, consolidationKey }: AdmPush, now: Date): string {
  const left = secondsLeft(expiresAt, now)
  return JSON.stringify({
    data,
    priority,
    expiresAfter: Math.min(Math.max(left, LEAST_EXPIRY_SECONDS), MOST_EXPIRY_SECONDS),
    ...(consolidationKey !== undefined && { consolidationKey }),
  })
}
