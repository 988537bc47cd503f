// A stand-in for Huawei's Push Kit, v1 and v2, with the codes that Huawei documents.

import { parseObject } from '../json.ts'
import { type ChannelService, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'

type Notification = { title?: unknown; body?: unknown; click_action?: Record<string, unknown> } & Record<
  string,
  unknown
>
type Android = { ttl?: unknown; urgency?: unknown; collapse_key?: unknown; notification?: Notification } & Record<
  string,
  unknown
>

export type HuaweiMessage = { token: string[]; data?: string; android?: Android }

export type HuaweiSinkSettings = {
  /** The only app and project that are accepted. Without them, all are. */
  known?: { appId: string; projectId?: string | undefined } | undefined
  isValid(authorization: string | undefined): boolean
  onReceived(message: HuaweiMessage): void
}

export const HUAWEI_HOST = 'push-api.cloud.huawei.com'
const SEND_PATH = /^\/(v[12])\/([^/]+)\/messages:send$/
/** The limit for the whole message without the tokens. */
const MOST_BYTES = 4096

export const isForHuawei = ({ path }: SinkRequest) => SEND_PATH.test(path)

export const huaweiRefusal = (status: number, code: string, headers: Record<string, string> = {}): SinkAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ code, msg: 'refused', requestId: '0' }),
})

export function huaweiService({ known, isValid, onReceived }: HuaweiSinkSettings): ChannelService {
  let taken = 0
  return {
    channel: 'huawei',
    addressOf: (request) => String(messageOf(request)?.token?.[0]),
    check(request) {
      const { method, path, headers } = request
      const [, version, id] = SEND_PATH.exec(path) ?? []
      if (method !== 'POST' || !isKnown(version, id)) return huaweiRefusal(404, '80300002')
      if (!isValid(headers.authorization)) return huaweiRefusal(401, '80200003')
      return judgeMessage(messageOf(request))
    },
    accept(request) {
      onReceived(messageOf(request) as HuaweiMessage)
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code: '80000000', msg: 'Success', requestId: String(++taken) }),
      }
    },
    refusals: {
      unavailable: () => huaweiRefusal(500, '81000001'),
      rate_limited: () => huaweiRefusal(503, '', RETRY_AFTER),
      gone: () => huaweiRefusal(400, '80300007'),
    },
  }

  function isKnown(version: string | undefined, id: string | undefined): boolean {
    if (!known) return id !== undefined
    return id === (version === 'v2' ? known.projectId : known.appId)
  }
}

const messageOf = ({ body }: SinkRequest) => parseObject(body)?.message as Partial<HuaweiMessage> | undefined

const WRONG = '80100003'

function judgeMessage(message: Partial<HuaweiMessage> | undefined): SinkAnswer | undefined {
  const { token, ...rest } = message ?? {}
  if (!Array.isArray(token) || token.length === 0) return huaweiRefusal(400, '80100001')
  if (!token.every((it) => typeof it === 'string' && it !== '')) return huaweiRefusal(400, '80300007')
  if (Buffer.byteLength(JSON.stringify(rest)) > MOST_BYTES) return huaweiRefusal(400, '80300008')
  const { data, android = {} } = rest
  const { notification, ttl, urgency, collapse_key } = android
  if (!/^\d+(\.\d{1,9})?[sS]?$/.test(String(ttl ?? '86400s'))) return huaweiRefusal(400, '80100004')
  if (!['HIGH', 'NORMAL', undefined].includes(urgency as string | undefined)) return huaweiRefusal(400, WRONG)
  const group = collapse_key ?? -1
  if (!Number.isInteger(group) || Number(group) < -1 || Number(group) > 100) return huaweiRefusal(400, '80100013')
  if (notification) return isShowable(notification) ? undefined : huaweiRefusal(400, WRONG)
  return typeof data === 'string' && data !== '' ? undefined : huaweiRefusal(400, WRONG)
}

function isShowable(notification: Notification): boolean {
  const { title, body, click_action, color, style, big_picture, image, badge, visibility } = notification
  const isText = (it: unknown) => typeof it === 'string' && it !== ''
  const isPicture = (it: unknown) => it === undefined || /^https:\/\//.test(String(it))
  const { type, intent, action, url } = click_action ?? {}
  const leads = (type === 1 && isText(intent ?? action)) || (type === 2 && isPicture(url ?? '')) || type === 3
  const { add_num = 1, set_num = 0 } = (badge ?? {}) as { add_num?: number; set_num?: number }
  return (
    [title, body].every(isText) &&
    leads &&
    (color === undefined || /^#[0-9a-f]{6}$/i.test(String(color))) &&
    (style !== 2 || isText(big_picture)) &&
    [big_picture, image].every(isPicture) &&
    add_num >= 1 &&
    add_num <= 99 &&
    set_num >= 0 &&
    set_num <= 99 &&
    ['PUBLIC', 'PRIVATE', 'SECRET', undefined].includes(visibility as string | undefined)
  )
}
