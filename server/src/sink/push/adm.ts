// A stand-in for Amazon Device Messaging, with the reasons that Amazon documents.

import { parseObject } from '../json.ts'
import { type ChannelService, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'

export type AdmMessage = {
  registrationId: string
  data: Record<string, string>
  consolidationKey?: string
  expiresAfter?: number
  priority?: string
}

export type AdmSinkSettings = {
  isValid(authorization: string | undefined): boolean
  onReceived(message: AdmMessage): void
}

export const ADM_HOST = 'api.amazon.com'
const SEND_PATH = /^\/messaging\/registrations\/([^/]+)\/messages$/
const MOST_BYTES = 6144

export const isForAdm = ({ path }: SinkRequest) => SEND_PATH.test(path)

export const admRefusal = (status: number, reason: string, headers: Record<string, string> = {}): SinkAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ reason }),
})

export function admService({ isValid, onReceived }: AdmSinkSettings): ChannelService {
  let taken = 0
  return {
    channel: 'adm',
    addressOf: registrationOf,
    check({ method, headers, body, path }) {
      if (method !== 'POST' || !SEND_PATH.test(path)) return admRefusal(404, 'NotFound')
      if (!isValid(headers.authorization)) return admRefusal(401, 'AccessTokenExpired')
      if (
        headers['x-amzn-type-version'] !== 'com.amazon.device.messaging.ADMMessage@1.0' ||
        headers['x-amzn-accept-type'] !== 'com.amazon.device.messaging.ADMSendResult@1.0'
      )
        return admRefusal(400, 'InvalidType')
      return judgeMessage(parseObject(body))
    },
    accept(request) {
      const registrationId = registrationOf(request)
      onReceived({ ...(parseObject(request.body) as Omit<AdmMessage, 'registrationId'>), registrationId })
      return {
        status: 200,
        headers: { 'content-type': 'application/json', 'x-amzn-requestid': `adm-${++taken}` },
        body: JSON.stringify({ registrationID: registrationId }),
      }
    },
    refusals: {
      unavailable: () => admRefusal(503, 'ServiceUnavailable', RETRY_AFTER),
      rate_limited: () => admRefusal(429, 'MaxRateExceeded', RETRY_AFTER),
      gone: () => admRefusal(400, 'Unregistered'),
    },
  }
}

const registrationOf = ({ path }: SinkRequest) => decodeURIComponent(SEND_PATH.exec(path)?.[1] ?? '')

function judgeMessage(message: Record<string, unknown> | undefined): SinkAnswer | undefined {
  const { data, consolidationKey = '', expiresAfter = 604_800, priority } = message ?? {}
  const isData = data !== null && typeof data === 'object' && Object.values(data).every((it) => typeof it === 'string')
  if (!isData || !['high', 'normal', undefined].includes(priority as string | undefined))
    return admRefusal(400, 'InvalidData')
  if (Buffer.byteLength(JSON.stringify(data)) > MOST_BYTES) return admRefusal(413, 'MessageTooLarge')
  if (typeof consolidationKey !== 'string' || consolidationKey.length > 64)
    return admRefusal(400, 'InvalidConsolidationKey')
  const seconds = Number(expiresAfter)
  if (!Number.isInteger(seconds) || seconds < 60 || seconds > 2_678_400) return admRefusal(400, 'InvalidExpiration')
  return undefined
}
