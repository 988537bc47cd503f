// What somebody would have seen of a push message, and which message of ours it was.

import type { ApnsReceived } from './apns.ts'
import type { Delivery } from './deliveries.ts'
import type { FcmMessage } from './fcm.ts'
import { parseObject } from './json.ts'
import type { WebPushReceived } from './web-push.ts'

type Read = Omit<Delivery, 'at'>

const textOf = (value: unknown) => (typeof value === 'string' ? value : null)
const messageIdOf = (custom: unknown) => textOf((custom as { i?: unknown } | undefined)?.i)

/** A live activity names its message in what it shows. */
type Aps = {
  alert?: string | { title?: unknown; body?: unknown }
  'content-state'?: { onesignal?: { notificationId?: unknown } }
}

export function readApns({ token, payload }: ApnsReceived): Read {
  const { alert, 'content-state': shown } = (payload.aps ?? {}) as Aps
  const text = typeof alert === 'object' ? (textOf(alert?.body) ?? textOf(alert?.title)) : textOf(alert)
  return {
    channel: 'apns',
    to: token,
    message_id: messageIdOf(payload.custom) ?? textOf(shown?.onesignal?.notificationId),
    text,
  }
}

export function readFcm({ token, data = {}, notification = {} }: FcmMessage): Read {
  const text = textOf(data.alert ?? data.title ?? notification.body ?? notification.title)
  return { channel: 'fcm', to: token, message_id: messageIdOf(parseObject(data.custom ?? '')), text }
}

export function readWebPush({ endpoint, text }: WebPushReceived): Read {
  const payload = parseObject(text ?? '')
  return {
    channel: 'web_push',
    to: endpoint,
    message_id: messageIdOf(payload?.custom),
    text: payload ? (textOf(payload.alert) ?? textOf(payload.title)) : text,
  }
}
