import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { ChangeUsers } from '../change.ts'
import { hashToken } from './subscription.ts'

const UNSUBSCRIBED = -2
const SUBSCRIBED = 1

export type SmsOptOut = { subscriptionId: SubscriptionId; userId: UserId }

/**
 * Applies the request of a person who texted from this number. Undefined when the app does not know the number. A
 * request to subscribe does not undo what the app itself has switched off.
 */
export function setSmsOptOut(
  change: ChangeUsers,
  appId: AppId,
  number: string,
  isOut: boolean,
): Promise<SmsOptOut | undefined> {
  const tokenHash = hashToken('SMS', number)
  return change(appId, {
    refs: [{ type: 'SMS', tokenHash }],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = state.findByToken('SMS', tokenHash)
      if (!known) return undefined
      const before = known.notificationTypes ?? SUBSCRIBED
      const isWanted = isOut ? before !== UNSUBSCRIBED : before <= 0 && known.enabled
      if (isWanted)
        state.putSubscription({
          ...known,
          notificationTypes: isOut ? UNSUBSCRIBED : SUBSCRIBED,
          updatedAt: now,
        })
      return { subscriptionId: known.id, userId: known.userId }
    },
  })
}

const UNREACHABLE = -10

/** The provider reports that nothing can be delivered there any more, or that the person has opted out. */
export function markUnreachable(
  change: ChangeUsers,
  appId: AppId,
  id: SubscriptionId,
  isOptedOut: boolean,
): Promise<void> {
  return change(appId, {
    refs: [{ subscriptionId: id }],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = state.subscriptions.get(id)
      // A subscription that is already unsubscribed keeps its reason.
      if (!known || (known.notificationTypes ?? SUBSCRIBED) <= 0) return
      state.putSubscription({ ...known, notificationTypes: isOptedOut ? UNSUBSCRIBED : UNREACHABLE, updatedAt: now })
    },
  })
}

/**
 * Applies what the person behind a subscription asked for in an answer to a message. A request to subscribe does not
 * undo what the app itself has switched off.
 */
export function setSubscribedByUser(
  change: ChangeUsers,
  appId: AppId,
  id: SubscriptionId,
  isWanted: boolean,
): Promise<void> {
  return change(appId, {
    refs: [{ subscriptionId: id }],
    needs: { subscriptions: true },
    apply(state, now) {
      const known = state.subscriptions.get(id)
      if (!known) return
      const isOut = known.notificationTypes === UNSUBSCRIBED
      if (isWanted ? !(isOut && known.enabled) : isOut) return
      state.putSubscription({ ...known, notificationTypes: isWanted ? SUBSCRIBED : UNSUBSCRIBED, updatedAt: now })
    },
  })
}
