// Live activities: live displays on the iOS lock screen. They are started with the app's token for that type of
// activity, and updated and ended with the token of the individual activity.

import { compact, nearestPriority } from '../content.ts'
import { toUnixSeconds } from '../jwt.ts'
import type { ApnsPush } from './payload.ts'

export type LiveActivityContent = {
  messageId: string
  expiresAt: Date
  priority: number
  /** What the activity shows now. */
  state: Readonly<Record<string, unknown>>
  /** Given when the activity starts: its type, its fixed attributes, and our id for it. */
  start?: { type: string; attributes: Readonly<Record<string, unknown>>; activityId: string } | undefined
  isEnd?: boolean | undefined
  alert?: { title?: string | undefined; body?: string | undefined; sound?: string | undefined } | undefined
  staleAt?: Date | undefined
  dismissAt?: Date | undefined
  relevanceScore?: number | undefined
}

/** `now` orders updates: iOS drops an update that is older than what it shows. */
export function writeLiveActivityPush(activity: LiveActivityContent, now: Date): ApnsPush {
  const { messageId, state, start, isEnd, alert, staleAt, dismissAt, relevanceScore } = activity
  const aps = compact({
    timestamp: toUnixSeconds(now),
    event: start ? 'start' : isEnd ? 'end' : 'update',
    // The SDK confirms the receipt with this id, and identifies its own activities with the other.
    'content-state': { ...state, onesignal: { notificationId: messageId } },
    'attributes-type': start?.type,
    attributes: start && { ...start.attributes, onesignal: { activityId: start.activityId } },
    alert: alert && compact(alert),
    'stale-date': staleAt && toUnixSeconds(staleAt),
    'dismissal-date': dismissAt && toUnixSeconds(dismissAt),
    'relevance-score': relevanceScore,
  })
  const { expiresAt } = activity
  const priority = nearestPriority(activity.priority, [5, 10])
  return { body: JSON.stringify({ aps }), type: 'liveactivity', priority, expiresAt, collapseId: undefined }
}
