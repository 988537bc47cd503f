// A provider says that an address leads nowhere any more.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { ChangeUsers } from '../change.ts'
import { isReachable } from './reachable.ts'

export type AddressFailure = {
  /** The address that was tried; a new one in its place is not meant. */
  token: string
  notificationTypes: number
  /** When the provider learned of it: who has registered since is not meant. */
  since?: Date | undefined
}

/** True when it was unsubscribed by this. */
export const unsubscribeAddress = (
  change: ChangeUsers,
  appId: AppId,
  id: SubscriptionId,
  drop: AddressFailure,
): Promise<boolean> =>
  change(appId, {
    refs: [{ subscriptionId: id }],
    needs: { subscriptions: true },
    apply(state, now) {
      const it = state.subscriptions.get(id)
      if (!it || it.token !== drop.token || !isReachable(it)) return false
      if (drop.since && new Date(it.updatedAt) > drop.since) return false
      state.putSubscription({ ...it, notificationTypes: drop.notificationTypes, updatedAt: now })
      return true
    },
  })
