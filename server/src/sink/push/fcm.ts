// A stand-in for FCM's v1 API, with the answers that Google documents. google-tokens.ts issues the access tokens it
// requires.

import { parseObject } from '../json.ts'
import { type ChannelService, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'

export type FcmMessage = {
  token: string
  data?: Record<string, string>
  notification?: { title?: string; body?: string }
  android?: { priority?: string; ttl?: string; collapse_key?: string }
}

export type FcmSinkSettings = {
  /** The only project that is accepted. Without it, all projects are. */
  projectId?: string | undefined
  isValid(accessToken: string): boolean
  onReceived(message: FcmMessage): void
}

export const FCM_HOST = 'fcm.googleapis.com'
const FCM_ERROR = 'type.googleapis.com/google.firebase.fcm.v1.FcmError'
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'
const SEND_PATH = /^\/v1\/projects\/([^/]+)\/messages:send$/

export const isForFcm = ({ path }: SinkRequest) => path.startsWith('/v1/projects/')

type FcmRefusal = { code?: string; field?: string; headers?: Record<string, string> }
export function fcmRefusal(status: number, word: string, { code, field, headers = {} }: FcmRefusal = {}): SinkAnswer {
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

export function fcmService({ projectId, isValid, onReceived }: FcmSinkSettings): ChannelService {
  let taken = 0
  return {
    channel: 'fcm',
    addressOf: (request) => String(messageOf(request)?.token),
    check(request) {
      const { method, path, headers } = request
      const [, project] = SEND_PATH.exec(path) ?? []
      if (method !== 'POST' || project === undefined || (projectId ?? project) !== project)
        return fcmRefusal(404, 'NOT_FOUND')
      const [, bearer = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
      if (!isValid(bearer)) return fcmRefusal(401, 'UNAUTHENTICATED')
      return judgeMessage(messageOf(request))
    },
    accept(request) {
      onReceived(messageOf(request) as FcmMessage)
      const [, project] = SEND_PATH.exec(request.path) ?? []
      return {
        status: 200,
        headers: { 'content-type': 'application/json; charset=UTF-8' },
        body: JSON.stringify({ name: `projects/${project}/messages/0:${++taken}` }),
      }
    },
    refusals: {
      unavailable: () => fcmRefusal(503, 'UNAVAILABLE', { code: 'UNAVAILABLE' }),
      rate_limited: () => fcmRefusal(429, 'RESOURCE_EXHAUSTED', { code: 'QUOTA_EXCEEDED', headers: RETRY_AFTER }),
      gone: () => fcmRefusal(404, 'NOT_FOUND', { code: 'UNREGISTERED' }),
    },
  }
}

const messageOf = ({ body }: SinkRequest) => parseObject(body)?.message as Partial<FcmMessage> | undefined

function judgeMessage(message: Partial<FcmMessage> | undefined): SinkAnswer | undefined {
  if (!message?.token) return fcmRefusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT' })
  const data = Object.entries(message.data ?? {})
  if (data.some(([, it]) => typeof it !== 'string'))
    return fcmRefusal(400, 'INVALID_ARGUMENT', { field: 'message.data' })
  // Google's documentation: "The key should not be a reserved word".
  if (data.some(([key]) => /^(from|message_type)$|^(google|gcm)\./.test(key)))
    return fcmRefusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT', field: 'message.data' })
  if (data.join('').length > 4200)
    return fcmRefusal(400, 'INVALID_ARGUMENT', { code: 'INVALID_ARGUMENT', field: 'message' })
  return undefined
}
