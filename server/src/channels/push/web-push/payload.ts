// What the service worker of the official web SDK reads, and ours.

import { sha256 } from '../../../lib/secrets.ts'
import { compact, nearestPriority, type PushContent, rootData } from '../content.ts'

export type WebPush = {
  plain: Buffer
  expiresAt: Date
  urgency: 'very-low' | 'low' | 'normal' | 'high'
  /** A push service keeps the last of several with the same one. */
  topic: string | undefined
}

/** What the service workers read. */
const ROOT_KEYS = new Set('custom title alert icon image badge tag vibrate o'.split(' '))

/** RFC 8030 knows four. */
const URGENCIES = { 1: 'very-low', 3: 'low', 5: 'normal', 10: 'high' } as const

/** Made once for all that get the same. */
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
