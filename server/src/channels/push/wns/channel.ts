// Windows Push Notification Services. The address comes from a user's subscription, and the app's access token is sent
// to it. Therefore only Microsoft's hosts are accepted, and origins that the operator has explicitly redirected.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { Channel, ChannelOutcome, ProviderRoute } from '../../channel.ts'
import { secondsLeft } from '../content.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { createPushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { interpretMissingReply, type ProviderReply, retryAfterMs } from '../http/exchange.ts'
import { createClientCredentialsTokens } from '../oauth/client-credentials.ts'
import { sendAuthorized } from '../oauth/send-authorized.ts'
import type { WnsPush } from './payload.ts'

/** `clientId`: the package's security identifier, such as ms-app://s-1-15-2-…. */
export type WnsCredentials = { clientId: string; secret: string }

export type WnsItem = {
  appId: AppId
  /** The URI of the channel that Windows opened for the app. */
  channelUri: string
  credentials: WnsCredentials
  push: WnsPush
}

export type WnsSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

const TOKEN_URL = 'https://login.live.com/accesstoken.srf'
const SCOPE = 'notify.windows.com'
const HOST = /^([a-z0-9-]+\.)+(notify|wns)\.windows\.com$/
const MOST_BYTES = 5000

export function openWnsChannel({ clock, ...settings }: WnsSettings): Channel<WnsItem> {
  const client = createPushHttpClient({ ...settings, allowsHttp1: true })
  const accessFor = createClientCredentialsTokens(clock, client, TOKEN_URL, SCOPE)

  async function sendOne({ appId, channelUri, credentials, push }: WnsItem): Promise<ChannelOutcome> {
    const url = readChannelUri(channelUri, settings.route)
    if (!url) return { kind: 'gone', reason: 'channel address not valid' }
    if (Buffer.byteLength(push.body) > MOST_BYTES) return { kind: 'failed', reason: 'too large' }
    const { origin, pathname, search } = url
    return sendAuthorized({
      appId,
      account: credentials,
      getAccessToken: accessFor,
      post: (accessToken) =>
        client.request({
          appId,
          origin,
          path: pathname + search,
          headers: { authorization: `Bearer ${accessToken}`, ...headersOf(push, clock.now()) },
          body: push.body,
        }),
      isUnauthenticated: isWnsTokenRefused,
      interpret: (reply) => interpretWnsResponse(reply, clock.now()),
    })
  }

  return createPushChannel({ sendOne, closeConnections: () => client.close(), itemsPerTurn: 100 })
}

function readChannelUri(text: string, route: ProviderRoute | undefined): URL | undefined {
  const url = URL.parse(text)
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined
  const isStandIn = Object.hasOwn(route?.connect ?? {}, url.origin)
  const isMicrosoft = HOST.test(url.hostname) && url.port === ''
  return isMicrosoft || isStandIn ? url : undefined
}

function headersOf({ type, expiresAt, priority, tag }: WnsPush, now: Date): Record<string, string> {
  const left = secondsLeft(expiresAt, now)
  return {
    'content-type': type === 'wns/raw' ? 'application/octet-stream' : 'text/xml',
    'x-wns-type': type,
    // Without time left, the message is delivered immediately or not at all.
    'x-wns-cache-policy': left > 0 ? 'cache' : 'no-cache',
    ...(left > 0 && { 'x-wns-ttl': String(left) }),
    'x-wns-priority': String(priority),
    'x-wns-requestforstatus': 'true',
    ...(tag !== undefined && { 'x-wns-tag': tag }),
  }
}

const isWnsTokenRefused = (reply: ProviderReply) => reply.kind === 'answer' && reply.status === 401

/** Used when an answer names no time. */
const THROTTLED_MS = 60_000
const BACKOFF_MS = 10_000

function interpretWnsResponse(reply: ProviderReply, now: Date): ChannelOutcome {
  if (reply.kind !== 'answer') return interpretMissingReply(reply)
  const { status, headers } = reply
  const reason = `status ${status}`
  const afterMs = retryAfterMs(reply, now)
  if (status === 200) return interpretWnsAcceptance(headers)
  if (status === 404 || status === 410) return { kind: 'gone', reason }
  if (status === 413) return { kind: 'failed', reason: 'too large' }
  if (status === 401) return { kind: 'misconfigured', reason: 'client secret refused' }
  // The channel belongs to another app, or our credentials do. Nobody is unsubscribed for that.
  if (status === 403) return { kind: 'failed', reason: 'channel of another app' }
  if (status === 406 || status === 429)
    return { kind: 'retry', reason, afterMs: afterMs ?? THROTTLED_MS, pausesProvider: true }
  if (status === 408 || status >= 500) return { kind: 'retry', reason, afterMs: afterMs ?? BACKOFF_MS }
  return { kind: 'failed', reason }
}

/** WNS answers 200 even for messages that it has dropped. */
function interpretWnsAcceptance(headers: (ProviderReply & { kind: 'answer' })['headers']): ChannelOutcome {
  const word = headers['x-wns-status'] ?? headers['x-wns-notificationstatus']
  if (word === 'dropped') return { kind: 'failed', reason: 'dropped' }
  if (word === 'channelthrottled') return { kind: 'retry', reason: 'channelthrottled', afterMs: THROTTLED_MS }
  const id = headers['x-wns-msg-id']
  return { kind: 'sent', ...(typeof id === 'string' && { id }) }
}
