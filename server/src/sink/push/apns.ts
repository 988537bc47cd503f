// A stand-in for APNs: checks tokens, certificates, topics and sizes as Apple documents it.

import { createPublicKey, randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { parseObject } from '../json.ts'
import { type ChannelService, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'
import { readJwt } from './jwt.ts'

export type ApnsAccount = { teamId: string; keyId: string; key: string; topic: string }
export type ApnsReceived = {
  token: string
  headers: Record<string, string | undefined>
  payload: Record<string, unknown>
  jwt: string
}

export type ApnsSinkSettings = {
  clock: Pick<Clock, 'now'>
  /** The only team that is accepted, with its app. Without it, all teams are. */
  account?: ApnsAccount | undefined
  onReceived(received: ApnsReceived): void
}

export const APNS_HOSTS = ['api.push.apple.com', 'api.sandbox.push.apple.com']
const TOKEN_PATH = /^\/3\/device\/([^/]*)$/

export const isForApns = ({ path }: SinkRequest) => path.startsWith('/3/device/')

export const apnsRefusal = (status: number, reason: string, more: object = {}, headers = {}): SinkAnswer => ({
  status,
  headers: { 'apns-id': randomUUID().toUpperCase(), ...headers },
  body: JSON.stringify({ reason, ...more }),
})

export function apnsService({ clock, account, onReceived }: ApnsSinkSettings): ChannelService {
  const judgeToken = tokenJudge(clock, account)
  return {
    channel: 'apns',
    addressOf: ({ path }) => TOKEN_PATH.exec(path)?.[1] ?? '',
    check(request) {
      const { method, path, headers, body } = request
      if (method !== 'POST') return apnsRefusal(405, 'MethodNotAllowed')
      const [, token] = TOKEN_PATH.exec(path) ?? []
      if (token === undefined) return apnsRefusal(404, 'BadPath')
      if (token === '') return apnsRefusal(400, 'MissingDeviceToken')
      const uid = headers.authorization === undefined ? request.subject()?.UID : undefined
      const refused = uid ? undefined : judgeToken(bearerOf(request))
      if (refused) return refused
      const topic = headers['apns-topic'] ?? uid
      if (!topic) return apnsRefusal(400, 'MissingTopic')
      const base = topic.replace(/\.(voip|push-type\.liveactivity)$/, '')
      if (uid && base !== uid) return apnsRefusal(400, 'TopicDisallowed')
      if (!uid && account && base !== account.topic) return apnsRefusal(400, 'DeviceTokenNotForTopic')
      if (!/^[0-9a-f]{64,200}$/i.test(token)) return apnsRefusal(400, 'BadDeviceToken')
      return judgeHeaders(headers) ?? judgeBody(body, headers['apns-push-type'])
    },
    accept(request) {
      const { path, headers, body } = request
      const payload = JSON.parse(body.toString('utf8')) as Record<string, unknown>
      onReceived({ token: TOKEN_PATH.exec(path)?.[1] ?? '', headers, payload, jwt: bearerOf(request) })
      return { status: 200, headers: { 'apns-id': headers['apns-id'] ?? randomUUID().toUpperCase() } }
    },
    refusals: {
      unavailable: () => apnsRefusal(503, 'ServiceUnavailable'),
      rate_limited: () => apnsRefusal(429, 'TooManyRequests', {}, RETRY_AFTER),
      gone: () => apnsRefusal(410, 'Unregistered', { timestamp: clock.now().getTime() }),
    },
  }
}

const bearerOf = ({ headers }: SinkRequest) => /^bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''

function tokenJudge(clock: Pick<Clock, 'now'>, account: ApnsAccount | undefined) {
  const known = account && { ...account, publicKey: createPublicKey(account.key) }
  return (bearer: string): SinkAnswer | undefined => {
    if (bearer === '') return apnsRefusal(403, 'MissingProviderToken')
    const jwt = readJwt(bearer)
    if (jwt?.header.alg !== 'ES256' || !jwt.header.kid || !jwt.claims.iss)
      return apnsRefusal(403, 'InvalidProviderToken')
    const { keyId, teamId, publicKey } = known ?? {}
    const isKnown = jwt.header.kid === keyId && jwt.claims.iss === teamId && publicKey && jwt.isSignedBy(publicKey)
    if (known && !isKnown) return apnsRefusal(403, 'InvalidProviderToken')
    const age = clock.now().getTime() / 1000 - Number(jwt.claims.iat)
    if (!(age < 3600)) return apnsRefusal(403, 'ExpiredProviderToken')
    return age < -60 ? apnsRefusal(403, 'InvalidProviderToken') : undefined
  }
}

function judgeHeaders(headers: Record<string, string | undefined>): SinkAnswer | undefined {
  const { 'apns-priority': priority = '10', 'apns-push-type': type = 'alert', 'apns-id': id } = headers
  if (!['1', '5', '10'].includes(priority)) return apnsRefusal(400, 'BadPriority')
  if (!['alert', 'background', 'voip', 'liveactivity'].includes(type)) return apnsRefusal(400, 'InvalidPushType')
  if (type === 'background' && priority === '10') return apnsRefusal(400, 'BadPriority')
  if (!/^\d+$/.test(headers['apns-expiration'] ?? '0')) return apnsRefusal(400, 'BadExpirationDate')
  if (Buffer.byteLength(headers['apns-collapse-id'] ?? '') > 64) return apnsRefusal(400, 'BadCollapseId')
  if (id !== undefined && !/^[0-9a-f-]{36}$/i.test(id)) return apnsRefusal(400, 'BadMessageId')
  return undefined
}

function judgeBody(body: Buffer, type: string | undefined): SinkAnswer | undefined {
  if (body.length === 0) return apnsRefusal(400, 'PayloadEmpty')
  if (body.length > (type === 'voip' ? 5120 : 4096)) return apnsRefusal(413, 'PayloadTooLarge')
  return parseObject(body) ? undefined : apnsRefusal(400, 'PayloadEmpty')
}
