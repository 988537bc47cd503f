// What becomes of a delivery that is due, before anybody is asked to bring it.

import { quietHoursOf, quietUntil } from '../../sending/quiet-hours.ts'
import type { DeliverySettings } from '../../sending/settings.ts'
import { isSubscribed } from '../../users/subscriptions/reachable.ts'
import { NO_ACTIVITY_TOKEN } from '../activities/resolve-tokens.ts'
import type { DeliveryState } from '../delivery.ts'
import type { DeliveryChange, DueDelivery, SentMessage } from './store.ts'

export const QUIET_HOURS = 'quiet_hours'

/** One that is not to be sent now, and what becomes of it. */
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

/** Undefined: it is to be sent now. `refusal`: why it must not be, found out by who knows its channel. */
export function decide(
  due: DueDelivery,
  message: SentMessage,
  rules: DecisionRules,
  now: Date,
  refusal?: string,
): DeliveryChange | undefined {
  const { options, channel } = message
  if (rules.discardBefore && due.dueAt < rules.discardBefore) return changeTo(due, 'skipped', 'discarded', now)
  if (due.ownerId === null) return changeTo(due, 'skipped', 'deleted', now)
  if (options.activity && due.token === null) return changeTo(due, 'skipped', NO_ACTIVITY_TOKEN, now)
  if (due.token === null || !(isSubscribed(due) || options.includeUnsubscribed))
    return changeTo(due, 'skipped', 'unsubscribed', now)
  if (refusal !== undefined) return changeTo(due, 'skipped', refusal, now)
  // Why it could not be sent before, if it was tried.
  if (due.expiresAt <= now) return changeTo(due, 'expired', due.reason, now)
  // A live activity shows what is so now: later it is of no use, and it began by day.
  const quiet = options.isTest || options.activity ? undefined : quietHoursOf(rules.settings, channel)
  const until = quiet && quietUntil(quiet, due.timeZone, now)
  if (!until) return undefined
  // To wait for what cannot be would only hide it.
  if (due.expiresAt <= until) return changeTo(due, 'expired', QUIET_HOURS, now)
  return { ...changeTo(due, 'pending', QUIET_HOURS, now), dueAt: until }
}
