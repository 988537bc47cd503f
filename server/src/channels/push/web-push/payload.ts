// The payload for the service worker of the official web SDK, and for ours.

import { sha256 } from '../../../lib/secrets.ts'
import { compact, nearestPriority, type PushContent, rootData } from '../content.ts'

export type WebPush = {
  plain: Buffer
  expiresAt: Date
  urgency: 'very-low' | 'low' | 'normal' | 'high'
  /** Of several messages with the same topic, a push service keeps the last. */
  topic: string | undefined
}

/** The keys that the service workers read. */
const ROOT_KEYS = new Set('custom title alert icon image badge tag vibrate o'.split(' '))

/** RFC 8030 defines four. */
const URGENCIES = { 1: 'very-low', 3: 'low', 5: 'normal', 10: 'high' } as const

/** Called once for all recipients of the same content. */
export function writeWebPush(content: PushContent): WebPush {
  const { messageId, title, body, url, data, icon, image, smallIcon, buttons, collapseId, web = {} } = content
  const payload = compact({
    ...Object.fromEntries(rootData(content, (key) => ROOT_KEYS.has(key))),
    custom: compact({
      i: messageId,
      a: data,
      u: url,
      rr: content.confirmsReceipt ? 'y' : undefined,
      ti: content.templateId,
    }),
    title,
    alert: body,
    icon,
    image,
    badge: smallIcon,
    tag: web.tag ?? collapseId,
    vibrate: web.vibrate,
    o: buttons?.map(({ id, text, icon, url }) => compact({ i: id, n: text, p: icon, u: url })),
  })
  return {
    plain: Buffer.from(JSON.stringify(payload)),
    expiresAt: content.expiresAt,
    urgency: URGENCIES[nearestPriority(content.priority, [1, 3, 5, 10])],
    topic: collapseId === undefined ? undefined : topicOf(collapseId),
  }
}

/** RFC 8030 allows 32 characters of base64url. */
const topicOf = (collapseId: string) =>
  /^[\w-]{1,32}$/.test(collapseId) ? collapseId : sha256(collapseId).toString('base64url').slice(0, 32)
