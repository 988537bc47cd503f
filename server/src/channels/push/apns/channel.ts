// APNs: iOS and macOS, and Safari before it supported web push. Apple wants few connections with many streams, and
// accepts the tokens of only one team on each. Therefore every team and every certificate of an app has its own
// connections.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import { sha256 } from '../../../lib/secrets.ts'
import type { Channel, ChannelOutcome } from '../../channel.ts'
import { createLruMap } from '../../lru-map.ts'
import { createPushChannel } from '../create-push-channel.ts'
import { createPushHttpClient, type PushHttpClient, type PushHttpSettings } from '../http/client.ts'
import { toUnixSeconds } from '../jwt.ts'
import { interpretApnsResponse, isApnsTokenExpired } from './interpret-response.ts'
import type { ApnsPush, ApnsPushType } from './payload.ts'
import { createApnsTokens } from './provider-token.ts'

export type ApnsServer = 'production' | 'development'

/** Keys and certificates are in PEM. */
export type ApnsCredentials =
  | { kind: 'token'; environment: ApnsServer; key: string; keyId: string; teamId: string; topic: string }
  /** Without a topic, Apple uses the one in the certificate. */
  | { kind: 'certificate'; environment: ApnsServer; key: string; certificate: string; topic: string | null }

export type ApnsItem = {
  appId: AppId
  /** The device token in hex. */
  token: string
  credentials: ApnsCredentials
  push: ApnsPush
  /** A UUID that Apple returns in its answer. */
  id?: string | undefined
}

export type ApnsSettings = { clock: Clock } & Omit<PushHttpSettings, 'allowsHttp1' | 'identity'>

const ORIGINS: Record<ApnsServer, string> = {
  production: 'https://api.push.apple.com',
  development: 'https://api.sandbox.push.apple.com',
}
const TOPIC_ENDINGS: Record<ApnsPushType, string> = {
  alert: '',
  background: '',
  voip: '.voip',
  liveactivity: '.push-type.liveactivity',
}
const mostBytes = (type: ApnsPushType) => (type === 'voip' ? 5120 : 4096)
/** How many teams and certificates may have connections at once. The least recently used are closed. */
const MOST_CLIENTS = 500

export function openApnsChannel({ clock, ...settings }: ApnsSettings): Channel<ApnsItem> {
  const tokens = createApnsTokens(clock)
  const clients = createLruMap<string, PushHttpClient>(MOST_CLIENTS, (client) => void client.close())
  let isClosing = false

  function clientOf({ appId, credentials }: ApnsItem): PushHttpClient {
    const name = `${appId} ${nameOf(credentials)}`
    const known = clients.get(name)
    if (known) return known
    const identity = credentials.kind === 'certificate' ? credentials : undefined
    const client = createPushHttpClient({ ...settings, identity })
    clients.set(name, client)
    return client
  }

  async function sendOne(item: ApnsItem): Promise<ChannelOutcome> {
    const { appId, credentials, push, token } = item
    if (isClosing) return { kind: 'retry', reason: 'closing' }
    if (!/^([0-9a-f]{2}){8,100}$/i.test(token)) return { kind: 'gone', reason: 'BadDeviceToken' }
    if (Buffer.byteLength(push.body) > mostBytes(push.type)) return { kind: 'failed', reason: 'too large' }
    const client = clientOf(item)
    const post = (jwt?: string) =>
      client.request({
        appId,
        origin: ORIGINS[credentials.environment],
        path: `/3/device/${token}`,
        headers: headersOf(item, clock.now(), jwt),
        body: push.body,
      })
    if (credentials.kind === 'certificate') return interpretApnsResponse(await post(), clock.now())

    let jwt: string
    try {
      jwt = tokens.get(credentials)
    } catch {
      return { kind: 'misconfigured', reason: 'key not usable' }
    }
    const reply = await post(jwt)
    const renewed = isApnsTokenExpired(reply) ? tokens.renew(credentials, jwt) : undefined
    return interpretApnsResponse(renewed ? await post(renewed) : reply, clock.now())
  }

  function closeConnections() {
    isClosing = true
    return Promise.all(clients.values().map((client) => client.close()))
  }
  return createPushChannel({ sendOne, closeConnections, itemsPerTurn: 100 })
}

const nameOf = (credentials: ApnsCredentials) =>
  credentials.kind === 'token'
    ? `${credentials.environment} ${credentials.teamId}`
    : `${credentials.environment} ${sha256(credentials.certificate + credentials.key).toString('hex')}`

function headersOf({ credentials, push, id }: ApnsItem, now: Date, jwt: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {
    'apns-push-type': push.type,
    'apns-priority': String(push.priority),
    // With 0, Apple tries to deliver once and stores nothing.
    'apns-expiration': push.expiresAt > now ? String(toUnixSeconds(push.expiresAt)) : '0',
  }
  if (jwt !== undefined) headers.authorization = `bearer ${jwt}`
  if (credentials.topic !== null) headers['apns-topic'] = topicFor(credentials.topic, push.type)
  if (push.collapseId !== undefined) headers['apns-collapse-id'] = push.collapseId
  if (id !== undefined) headers['apns-id'] = id
  return headers
}

const topicFor = (topic: string, type: ApnsPushType) =>
  topic.endsWith(TOPIC_ENDINGS[type]) ? topic : topic + TOPIC_ENDINGS[type]
