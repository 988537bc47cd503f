// The payloads for iOS and the official SDK, and for Safari before it supported web push.

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

/** Apple's priorities in rising order: save power, send in groups, send at once. */
const PRIORITIES = [1, 5, 10] as const

/** The keys that iOS and the SDK read, including older versions of the SDK. */
const ROOT_KEYS = new Set('aps custom att buttons o os_data'.split(' '))

/** Called once for all recipients of the same content. */
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
      // For the app's extension, which adds images and buttons, increments badges and confirms the receipt.
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
    // Apple accepts background messages only with this priority.
    priority: isQuiet ? 5 : nearestPriority(content.priority, PRIORITIES),
    expiresAt: content.expiresAt,
    collapseId: collapseId === undefined ? undefined : collapseHeader(collapseId),
  }
}

/** For Safari's old Website Push: `url-args` fill in the URL template from the website's push package. */
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

/** Apple accepts at most 64 bytes, and only these characters are valid in a header. */
const collapseHeader = (collapseId: string) =>
  /^[\x21-\x7e]{1,64}$/.test(collapseId) ? collapseId : sha256(collapseId).toString('base64url')
