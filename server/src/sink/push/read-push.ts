// Finds the text that a person would have seen of a push message, and the id of the message.

import type { SinkDelivery } from '../deliveries.ts'
import { parseObject } from '../json.ts'
import type { AdmMessage } from './adm.ts'
import type { ApnsReceived } from './apns.ts'
import type { FcmMessage } from './fcm.ts'
import type { HuaweiMessage } from './huawei.ts'
import type { WebPushReceived } from './web-push.ts'
import type { WnsReceived } from './wns.ts'

type ParsedPush = Omit<SinkDelivery, 'at'>

const textOf = (value: unknown) => (typeof value === 'string' ? value : null)
const messageIdOf = (custom: unknown) => textOf((custom as { i?: unknown } | undefined)?.i)

/** A live activity has its message's id in its content. */
type Aps = {
  alert?: string | { title?: unknown; body?: unknown }
  'content-state'?: { onesignal?: { notificationId?: unknown } }
}

export function readApns({ token, payload }: ApnsReceived): ParsedPush {
  const { alert, 'content-state': shown } = (payload.aps ?? {}) as Aps
  const text = typeof alert === 'object' ? (textOf(alert?.body) ?? textOf(alert?.title)) : textOf(alert)
  return {
    channel: 'apns',
    to: token,
    message_id: messageIdOf(payload.custom) ?? textOf(shown?.onesignal?.notificationId),
    text,
  }
}

export function readFcm({ token, data = {}, notification = {} }: FcmMessage): ParsedPush {
  const text = textOf(data.alert ?? data.title ?? notification.body ?? notification.title)
  return { channel: 'fcm', to: token, message_id: messageIdOf(parseObject(data.custom ?? '')), text }
}

export function readWebPush({ endpoint, text }: WebPushReceived): ParsedPush {
  const payload = parseObject(text ?? '')
  return {
    channel: 'web_push',
    to: endpoint,
    message_id: messageIdOf(payload?.custom),
    text: payload ? (textOf(payload.alert) ?? textOf(payload.title)) : text,
  }
}

/** Reads what the SDK would show of a data message, or the system of a notification. */
export function readHuawei({ token: [to = ''], data, android }: HuaweiMessage): ParsedPush {
  const { notification } = android ?? {}
  if (!notification)
    return { ...readFcm({ token: to, data: (parseObject(data ?? '') ?? {}) as PushTexts }), channel: 'huawei' }
  const [, custom = ''] = /;S\.custom=([^;]*)/.exec(String(notification.click_action?.intent)) ?? []
  const message_id = messageIdOf(parseObject(decodeURIComponent(custom)))
  return { channel: 'huawei', to, message_id, text: textOf(notification.body) }
}

type PushTexts = Record<string, string>

export const readAdm = ({ registrationId, data }: AdmMessage): ParsedPush => ({
  ...readFcm({ token: registrationId, data }),
  channel: 'adm',
})

const ENTITIES: PushTexts = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const unescapeXml = (xml: string | undefined) => xml?.replace(/&(\w+);/g, (all, name: string) => ENTITIES[name] ?? all)

export function readWns({ channelUri, body }: WnsReceived): ParsedPush {
  const [, launch] = /<toast launch="([^"]*)"/.exec(body) ?? []
  const [, text] = /<text id="2">([^<]*)</.exec(body) ?? []
  const payload = parseObject(unescapeXml(launch) ?? body)
  return { channel: 'wns', to: channelUri, message_id: messageIdOf(payload?.custom), text: unescapeXml(text) ?? null }
}
