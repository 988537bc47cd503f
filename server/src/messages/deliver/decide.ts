// Decides what becomes of a due delivery before it is composed and sent.

import { quietHoursOf, quietUntil } from '../../sending/quiet-hours.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import { isSubscribed } from '../../users/subscriptions/reachable.ts'
import type { DeliveryState } from '../delivery.ts'
import { DELETED, NO_ACTIVITY_TOKEN, UNSUBSCRIBED } from '../reasons.ts'
import type { DeliveryChange, DueDelivery, SentMessage } from './store.ts'

export const QUIET_HOURS = 'quiet_hours'

/** A delivery that is not sent now, and what it becomes. */
export type Decision = { due: DueDelivery; change: DeliveryChange }

export type DecisionRules = { settings: DeliverySettings; discardBefore: Date | undefined }

export const changeTo = (due: DueDelivery, state: DeliveryState, reason: string | null, now: Date): DeliveryChange => ({
  expandAt: due.expandAt,
  messageId: due.messageId,
  subscriptionId: due.subscriptionId,
  runId: due.runId,
  platform: due.platform,
  dueAt: due.dueAt,
  attempts: due.attempts,
  fence: null,
  providerRef: null,
  sendingDomain: due.sendingDomain,
  inboxProvider: due.inboxProvider,
  deliveredAt: null,
  bouncedAt: null,
  state,
  reason,
  settledAt: state === 'pending' ? null : now,
})

/** Undefined means: send it now. `refusal` is the channel's reason not to. */
export function decide(
  due: DueDelivery,
  message: SentMessage,
  rules: DecisionRules,
  now: Date,
  refusal?: string,
): DeliveryChange | undefined {
  const { options, channel } = message
  if (rules.discardBefore && due.dueAt < rules.discardBefore) return changeTo(due, 'skipped', 'discarded', now)
  if (due.ownerId === null) return changeTo(due, 'skipped', DELETED, now)
  if (options.activity && due.token === null) return changeTo(due, 'skipped', NO_ACTIVITY_TOKEN, now)
  if (due.token === null || !(isSubscribed(due) || options.includeUnsubscribed))
    return changeTo(due, 'skipped', UNSUBSCRIBED, now)
  if (refusal !== undefined) return changeTo(due, 'skipped', refusal, now)
  // It keeps the reason of its last attempt, if there was one.
  if (due.expiresAt <= now) return changeTo(due, 'expired', due.reason, now)
  // A live activity shows the current state, so it cannot wait, and it was started by day.
  const quiet = options.isTest || options.activity ? undefined : quietHoursOf(rules.settings, channel)
  const until = quiet && quietUntil(quiet, due.timeZone, now)
  if (!until) return undefined
  // It would expire before quiet hours end.
  if (due.expiresAt <= until) return changeTo(due, 'expired', QUIET_HOURS, now)
  return { ...changeTo(due, 'pending', QUIET_HOURS, now), dueAt: until }
}
