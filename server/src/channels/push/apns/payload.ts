// What iOS and the official SDK on it read; and what Safari read before it took part in web push.

import { sha256 } from '../../../lib/secrets.ts'
import { compact, nearestPriority, type PushContent, rootData } from '../content.ts'

export type ApnsPushType = 'alert' | 'background' | 'voip' | 'liveactivity'

export type ApnsPush = {
  /** JSON. */
  body: string
  type: ApnsPushType
  priority: 1 | 5 | 10
  expiresAt: Date
  collapseId: string | undefined
}

/** What Apple knows, in rising order: save power, send in groups, send at once. */
const PRIORITIES = [1, 5, 10] as const

/** What iOS and the SDK read, older versions of it included. */
const ROOT_KEYS = new Set('aps custom att buttons o os_data'.split(' '))

/** Made once for all that get the same. */
export function writeApnsPush(content: PushContent): ApnsPush {
  const { messageId, title, subtitle, body, url, data, image, sound, buttons, collapseId, group, ios = {} } = content
  const isShown = body !== undefined || title !== undefined || Object.keys(ios.alert ?? {}).length > 0
  const alert = {
    ...ios.alert,
    ...compact({
      title,
      subtitle,
      body,
      'summary-arg': ios.summaryArg,
      'summary-arg-count': ios.summaryArgCount,
    }),
  }
  const { badge } = ios
  const payload = compact({
    ...Object.fromEntries(rootData(content, (key) => ROOT_KEYS.has(key))),
    aps: compact({
      alert: isShown ? alert : undefined,
      sound: isShown ? sound : undefined,
      badge: badge && 'set' in badge ? badge.set : undefined,
      category: ios.category,
      'thread-id': group,
      'interruption-level': ios.interruptionLevel,
      'relevance-score': ios.relevanceScore,
      'target-content-id': ios.targetContentId,
      'content-available': ios.wakesApp || !isShown ? 1 : undefined,
      // For the app's extension, which adds pictures and buttons, counts badges up and confirms the receipt.
      'mutable-content': isShown ? 1 : undefined,
    }),
    custom: compact({
      i: messageId,
      a: data,
      u: url,
      ti: content.templateId,
      badge_inc: badge && 'increase' in badge ? badge.increase : undefined,
      collapse_id: collapseId,
    }),
    att: ios.attachments ?? (image === undefined ? undefined : { image }),
    buttons: buttons?.map(({ id, text }) => ({ i: id, n: text })),
  })
  const isQuiet = !isShown && !ios.isVoip
  return {
    body: JSON.stringify(payload),
    type: ios.isVoip ? 'voip' : isShown ? 'alert' : 'background',
    // Apple takes background messages with this priority only.
    priority: isQuiet ? 5 : nearestPriority(content.priority, PRIORITIES),
    expiresAt: content.expiresAt,
    collapseId: collapseId === undefined ? undefined : collapseHeader(collapseId),
  }
}

/** The Website Push of old: `url-args` fill the address that the website's package gave. */
export function writeSafariPush(content: PushContent): ApnsPush {
  const { title = '', body = '', buttons, url, collapseId } = content
  const action = buttons?.[0]?.text
  return {
    body: JSON.stringify({ aps: { alert: compact({ title, body, action }), 'url-args': [url ?? ''] } }),
    type: 'alert',
    priority: nearestPriority(content.priority, PRIORITIES),
    expiresAt: content.expiresAt,
    collapseId: collapseId === undefined ? undefined : collapseHeader(collapseId),
  }
}

/** At most 64 bytes, and a header takes no others than these. */
const collapseHeader = (collapseId: string) =>
  /^[\x21-\x7e]{1,64}$/.test(collapseId) ? collapseId : sha256(collapseId).toString('base64url')
