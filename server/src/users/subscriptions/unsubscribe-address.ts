// A provider reports that an address no longer leads anywhere.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { ChangeUsers } from '../change.ts'
import { isReachable } from './reachable.ts'

export type AddressFailure = {
  /** The address that was tried. A subscription that has a new one since is left alone. */
  token: string
  notificationTypes: number
  /** When the provider learned of it. A subscription that changed after that is left alone. */
  since?: Date | undefined
}

/** Returns whether this call unsubscribed it. */
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
