// Huawei's Push Kit: by project (v2) where the app names one, by app (v1) otherwise.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, Outcome } from '../../channel.ts'
import { createChannel } from '../create-push-channel.ts'
import { type ClientSettings, createHttpClient } from '../http/client.ts'
import { createClientTokens } from '../oauth/client-credentials.ts'
import { sendAuthorized } from '../oauth/send-authorized.ts'
import { isUnauthenticated, judge } from './interpret-response.ts'
import { type HuaweiPush, messageFor } from './payload.ts'

export type HuaweiCredentials = {
  /** Also the id of the OAuth client. */
  appId: string
  secret: string
  projectId?: string | undefined
  /** By which a tap finds the SDK in the app; without it a tap opens the app, or the address of the message. */
  packageName?: string | undefined
  /** Huawei shows nothing without a title. */
  defaultTitle: string
}

export type HuaweiItem = { appId: AppId; token: string; credentials: HuaweiCredentials; push: HuaweiPush }

export type HuaweiSettings = { clock: Clock } & Omit<ClientSettings, 'allowsHttp1' | 'identity'>

const ORIGIN = 'https://push-api.cloud.huawei.com'
const TOKEN_URL = 'https://oauth-login.cloud.huawei.com/oauth2/v3/token'
/** Of all but the token. */
const MOST_BYTES = 4096

export function huaweiChannel({ clock, ...settings }: HuaweiSettings): Channel<HuaweiItem> {
  const client = createHttpClient({ ...settings, allowsHttp1: true })
  const accessFor = createClientTokens(clock, client, TOKEN_URL)

  async function sendOne({ appId, token, credentials, push }: HuaweiItem): Promise<Outcome> {
    if (!/^[\x21-\x7e]+$/.test(token)) return { kind: 'gone', reason: 'token not valid' }
    const message = messageFor(push, credentials, clock.now())
    if (Buffer.byteLength(JSON.stringify(message)) > MOST_BYTES) return { kind: 'failed', reason: 'too large' }
    const { projectId } = credentials
    const path = projectId
      ? `/v2/${encodeURIComponent(projectId)}/messages:send`
      : `/v1/${encodeURIComponent(credentials.appId)}/messages:send`
    const body = JSON.stringify({ validate_only: false, message: { ...message, token: [token] } })
    return sendAuthorized({
      appId,
      account: { clientId: credentials.appId, secret: credentials.secret },
      accessFor,
      post: (accessToken) =>
        client.request({
          appId,
          origin: ORIGIN,
          path,
          headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json; charset=UTF-8' },
          body,
        }),
      isUnauthenticated,
      judge: (reply) => judge(reply, clock.now()),
    })
  }

  return createChannel({ sendOne, closeConnections: () => client.close(), atAStretch: 100 })
}
