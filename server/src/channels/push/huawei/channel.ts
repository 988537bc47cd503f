// Huawei's Push Kit: uses the API by project (v2) if the app has set a project, otherwise the one by app (v1).

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, ChannelOutcome } from '../../channel.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { createPushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { createClientCredentialsTokens } from '../oauth/client-credentials.ts'
import { sendAuthorized } from '../oauth/send-authorized.ts'
import type { HuaweiCredentials } from './credentials.ts'
import { interpretHuaweiResponse, isHuaweiTokenRefused } from './interpret-response.ts'
import { type HuaweiPush, writeHuaweiMessage } from './payload.ts'

export type HuaweiItem = { appId: AppId; token: string; credentials: HuaweiCredentials; push: HuaweiPush }

export type HuaweiSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

const ORIGIN = 'https://push-api.cloud.huawei.com'
const TOKEN_URL = 'https://oauth-login.cloud.huawei.com/oauth2/v3/token'
/** The limit for the whole message without the token. */
const MOST_BYTES = 4096

export function openHuaweiChannel({ clock, ...settings }: HuaweiSettings): Channel<HuaweiItem> {
  const client = createPushHttpClient({ ...settings, allowsHttp1: true })
  const accessFor = createClientCredentialsTokens(clock, client, TOKEN_URL)

  async function sendOne({ appId, token, credentials, push }: HuaweiItem): Promise<ChannelOutcome> {
    if (!/^[\x21-\x7e]+$/.test(token)) return { kind: 'gone', reason: 'token not valid' }
    const message = writeHuaweiMessage(push, credentials, clock.now())
    if (Buffer.byteLength(JSON.stringify(message)) > MOST_BYTES) return { kind: 'failed', reason: 'too large' }
    const { projectId } = credentials
    const path = projectId
      ? `/v2/${encodeURIComponent(projectId)}/messages:send`
      : `/v1/${encodeURIComponent(credentials.appId)}/messages:send`
    const body = JSON.stringify({ validate_only: false, message: { ...message, token: [token] } })
    return sendAuthorized({
      appId,
      account: { clientId: credentials.appId, secret: credentials.secret },
      getAccessToken: accessFor,
      post: (accessToken) =>
        client.request({
          appId,
          origin: ORIGIN,
          path,
          headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json; charset=UTF-8' },
          body,
        }),
      isUnauthenticated: isHuaweiTokenRefused,
      interpret: (reply) => interpretHuaweiResponse(reply, clock.now()),
    })
  }

  return createPushChannel({ sendOne, closeConnections: () => client.close(), itemsPerTurn: 100 })
}
