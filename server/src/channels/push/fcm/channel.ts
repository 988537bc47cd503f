// FCM, by its v1 API: Android.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, ChannelOutcome } from '../../channel.ts'
import { secondsLeft } from '../content.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { createPushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { sendAuthorized } from '../oauth/send-authorized.ts'
import { createServiceAccountTokens, type GoogleServiceAccount } from './access-token.ts'
import { interpretFcmResponse, isFcmTokenRefused } from './interpret-response.ts'
import type { FcmPush } from './payload.ts'

export type FcmItem = {
  appId: AppId
  /** The registration token of the device. */
  token: string
  credentials: GoogleServiceAccount
  push: FcmPush
}

export type FcmSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

const ORIGIN = 'https://fcm.googleapis.com'
/** The `token_uri` of the customer's file is ignored, so that the signed token request goes nowhere else. */
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const MOST_DATA_BYTES = 4096
const LONGEST_TTL_SECONDS = 2_419_200

export function openFcmChannel({ clock, ...settings }: FcmSettings): Channel<FcmItem> {
  const client = createPushHttpClient(settings)
  const accessFor = createServiceAccountTokens(clock, client, TOKEN_URL)

  async function sendOne({ appId, token, credentials, push }: FcmItem): Promise<ChannelOutcome> {
    if (token === '') return { kind: 'gone', reason: 'token empty' }
    if (bytesOf(push.data) > MOST_DATA_BYTES) return { kind: 'failed', reason: 'too large' }
    const body = bodyOf(token, push, clock.now())
    const path = `/v1/projects/${encodeURIComponent(credentials.projectId)}/messages:send`
    const post = (accessToken: string) =>
      client.request({
        appId,
        origin: ORIGIN,
        path,
        headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
        body,
      })
    return sendAuthorized({
      appId,
      account: credentials,
      getAccessToken: accessFor,
      post,
      isUnauthenticated: isFcmTokenRefused,
      interpret: (reply) => interpretFcmResponse(reply, clock.now()),
    })
  }

  return createPushChannel({ sendOne, closeConnections: () => client.close(), itemsPerTurn: 100 })
}

const bytesOf = (data: FcmPush['data']) =>
  Object.entries(data).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0)

function bodyOf(token: string, { data, priority, expiresAt, collapseKey }: FcmPush, now: Date): string {
  const ttl = `${Math.min(secondsLeft(expiresAt, now), LONGEST_TTL_SECONDS)}s`
  const android = { priority, ttl, ...(collapseKey !== undefined && { collapse_key: collapseKey }) }
  return JSON.stringify({ message: { token, android, data } })
}
