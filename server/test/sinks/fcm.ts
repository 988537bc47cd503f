// A stand-in of FCM's v1 interface and of Google's token address, with the answers that Google documents.

import { createPublicKey, randomBytes } from 'node:crypto'
import type { ServiceAccount } from '../../src/channels/push/fcm-token.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { readJwt } from './jwt.ts'
import { type Provider, type ProviderSettings, type SinkAnswer, type SinkRequest, startProvider } from './provider.ts'

export type FcmMessage = {
  token: string
  data: Record<string, string>
  android: { priority?: string; ttl?: string; collapse_key?: string }
}
export type FcmSink = Provider & { received: FcmMessage[]; tokensSold(): number; revokeTokens(): void }

const FCM_ERROR = 'type.googleapis.com/google.firebase.fcm.v1.FcmError'
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'

type Refusal = { code?: string; field?: string; headers?: Record<string, string> }
export function refusal(status: number, word: string, { code, field, headers = {} }: Refusal = {}): SinkAnswer {
  const details = [
    ...(code ? [{ '@type': FCM_ERROR, errorCode: code }] : []),
    ...(field ? [{ '@type': BAD_REQUEST, fieldViolations: [{ field }] }] : []),
  ]
  return {
    status,
    headers: { 'content-type': 'application/json; charset=UTF-8', ...headers },
    body: JSON.stringify({ error: { code: status, message: word, status: word, details } }),
  }
}

/** The address of the token service in scripts. */
export const TOKEN_PATH = '/token'

export async function startFcmSink(
  clock: Clock,
  account: ServiceAccount,
  settings: Partial<ProviderSettings> = {},
): Promise<FcmSink> {
  const publicKey = createPublicKey(account.privateKey)
  const received: FcmMessage[] = []
  const sold = new Map<string, number>()
  let tokensSold = 0

  function judgeGrant({ body }: SinkRequest): SinkAnswer | undefined {
    const grant = new URLSearchParams(body.toString('utf8'))
    const jwt = readJwt(grant.get('assertion') ?? '')
    const { iss, scope, aud, iat, exp } = jwt?.claims ?? {}
    const nowSeconds = clock.now().getTime() / 1000
    const isRight =
      grant.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
      jwt?.header.alg === 'RS256' &&
      iss === account.clientEmail &&
      String(scope)
        .split(' ')
        .some((it) => /\/auth\/(firebase\.messaging|cloud-platform)$/.test(it)) &&
      /^https:\/\/(oauth2|accounts|www)\.google(apis)?\.com\//.test(String(aud)) &&
      Number(exp) > nowSeconds &&
      Number(exp) - Number(iat) <= 3600 &&
      jwt.isSignedBy(publicKey)
    return isRight ? undefined : { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) }
  }

  function judgeMessage({ method, path, headers, body }: SinkRequest): SinkAnswer | undefined {
    if (method !== 'POST' || path !== `/v1/projects/${account.projectId}/messages:send`)
      return refusal(404, 'NOT_FOUND')
    const [, bearer = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    if (!((sold.get(bearer) ?? 0) > clock.now().getTime())) return refusal(401, 'UNAUTHENTICATED')
    const { message } = JSON.parse(body.toString('utf8')) as { message?: Partial<FcmMessage> }
    if (!message?.token) return refusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT' })
    const values = Object.values(message.data ?? {})
    if (values.some((it) => typeof it !== 'string')) return refusal(400, 'INVALID_ARGUMENT', { field: 'message.data' })
    if (Object.entries(message.data ?? {}).join('').length > 4200)
      return refusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT', field: 'message' })
    return undefined
  }

  const provider = await startProvider({
    hosts: ['fcm.googleapis.com', 'oauth2.googleapis.com'],
    addressOf: ({ path, body }) => (path === TOKEN_PATH ? path : String(parse(body)?.message?.token)),
    judge: (request) => (request.path === TOKEN_PATH ? judgeGrant(request) : judgeMessage(request)),
    accept({ path, body }) {
      if (path === TOKEN_PATH) {
        const token = `ya29.${randomBytes(16).toString('hex')}`
        sold.set(token, clock.now().getTime() + 3_599_000)
        tokensSold++
        return { status: 200, body: JSON.stringify({ access_token: token, expires_in: 3599, token_type: 'Bearer' }) }
      }
      const { message } = JSON.parse(body.toString('utf8'))
      received.push(message)
      return {
        status: 200,
        body: JSON.stringify({ name: `projects/${account.projectId}/messages/0:${received.length}` }),
      }
    },
    ...settings,
  })
  return { ...provider, received, tokensSold: () => tokensSold, revokeTokens: () => sold.clear() }
}

function parse(body: Buffer): { message?: { token?: unknown } } | undefined {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
