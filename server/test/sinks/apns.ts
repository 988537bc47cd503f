// A stand-in of APNs: judges tokens, certificates, topics and sizes as Apple documents it.

import { createPublicKey, type KeyObject, randomUUID } from 'node:crypto'
import type { Clock } from '../../src/lib/clock.ts'
import { readJwt } from './jwt.ts'
import { type Provider, type ProviderSettings, type SinkAnswer, type SinkRequest, startProvider } from './provider.ts'

export type ApnsAccount = { teamId: string; keyId: string; key: string; topic: string }
export type ApnsReceived = {
  token: string
  headers: Record<string, string | undefined>
  payload: Record<string, unknown>
  jwt: string
}
export type ApnsSink = Provider & { received: ApnsReceived[] }

export const refusal = (status: number, reason: string, more: object = {}): SinkAnswer => ({
  status,
  headers: { 'apns-id': randomUUID().toUpperCase() },
  body: JSON.stringify({ reason, ...more }),
})

const TOKEN_PATH = /^\/3\/device\/([^/]*)$/

export async function startApnsSink(
  clock: Clock,
  account: ApnsAccount,
  settings: Partial<ProviderSettings> = {},
): Promise<ApnsSink> {
  const publicKey = createPublicKey(account.key)
  const received: ApnsReceived[] = []
  const bearerOf = ({ headers }: SinkRequest) => /^bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''

  const provider = await startProvider({
    hosts: ['api.push.apple.com', 'api.sandbox.push.apple.com'],
    addressOf: ({ path }) => TOKEN_PATH.exec(path)?.[1] ?? '',
    judge(request) {
      const { method, path, headers, body, subject } = request
      if (method !== 'POST') return refusal(405, 'MethodNotAllowed')
      const [, token] = TOKEN_PATH.exec(path) ?? []
      if (token === undefined) return refusal(404, 'BadPath')
      if (token === '') return refusal(400, 'MissingDeviceToken')
      const refused = subject?.UID ? undefined : judgeToken(bearerOf(request), account, publicKey, clock)
      if (refused) return refused
      const topic = headers['apns-topic'] ?? subject?.UID
      if (!topic) return refusal(400, 'MissingTopic')
      const base = topic.replace(/\.(voip|push-type\.liveactivity)$/, '')
      if (subject?.UID && base !== subject.UID) return refusal(400, 'TopicDisallowed')
      if (!subject?.UID && base !== account.topic) return refusal(400, 'DeviceTokenNotForTopic')
      if (!/^[0-9a-f]{64,200}$/i.test(token)) return refusal(400, 'BadDeviceToken')
      return judgeHeaders(headers) ?? judgeBody(body, headers['apns-push-type'])
    },
    accept(request) {
      const { path, headers, body } = request
      const payload = JSON.parse(body.toString('utf8')) as Record<string, unknown>
      received.push({ token: TOKEN_PATH.exec(path)?.[1] ?? '', headers, payload, jwt: bearerOf(request) })
      return { status: 200, headers: { 'apns-id': headers['apns-id'] ?? randomUUID().toUpperCase() } }
    },
    ...settings,
  })
  return { ...provider, received }
}

function judgeToken(
  bearer: string,
  { teamId, keyId }: ApnsAccount,
  key: KeyObject,
  clock: Clock,
): SinkAnswer | undefined {
  if (bearer === '') return refusal(403, 'MissingProviderToken')
  const jwt = readJwt(bearer)
  const isRight = jwt?.header.alg === 'ES256' && jwt.header.kid === keyId && jwt.claims.iss === teamId
  if (!jwt || !isRight || !jwt.isSignedBy(key)) return refusal(403, 'InvalidProviderToken')
  const age = clock.now().getTime() / 1000 - Number(jwt.claims.iat)
  if (!(age < 3600)) return refusal(403, 'ExpiredProviderToken')
  return age < -60 ? refusal(403, 'InvalidProviderToken') : undefined
}

function judgeHeaders(headers: Record<string, string | undefined>): SinkAnswer | undefined {
  const { 'apns-priority': priority = '10', 'apns-push-type': type = 'alert', 'apns-id': id } = headers
  if (!['1', '5', '10'].includes(priority)) return refusal(400, 'BadPriority')
  if (!['alert', 'background', 'voip', 'liveactivity'].includes(type)) return refusal(400, 'InvalidPushType')
  if (type === 'background' && priority === '10') return refusal(400, 'BadPriority')
  if (!/^\d+$/.test(headers['apns-expiration'] ?? '0')) return refusal(400, 'BadExpirationDate')
  if (Buffer.byteLength(headers['apns-collapse-id'] ?? '') > 64) return refusal(400, 'BadCollapseId')
  if (id !== undefined && !/^[0-9a-f-]{36}$/i.test(id)) return refusal(400, 'BadMessageId')
  return undefined
}

function judgeBody(body: Buffer, type: string | undefined): SinkAnswer | undefined {
  if (body.length === 0) return refusal(400, 'PayloadEmpty')
  return body.length > (type === 'voip' ? 5120 : 4096) ? refusal(413, 'PayloadTooLarge') : undefined
}
