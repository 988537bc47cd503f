// An install of an app has one push subscription. SDKs create another when they have lost the first or its token
// changes; without this rule the device would get every message once for each of them.

import type { Authority } from '../../lib/authority.ts'
import { isUuidV4 } from '../../lib/ids.ts'
import { findRequestedSubscription, type SubscriptionRequest } from '../subscriptions/subscribe.ts'
import { isAddressType, RETIRED, type Subscription } from '../subscriptions/subscription.ts'
import type { OwnerRef } from '../user.ts'
import type { WorkingSet } from '../working-set.ts'

/**
 * The id that an SDK generated when it was installed. It counts as proof of the device, so it must be impossible to
 * guess: anything but a random UUID is ignored. The app's own back end does not act for a device.
 */
export const readInstallId = (given: string | undefined, authority: Authority): string | undefined =>
  authority.kind !== 'key' && given !== undefined && isUuidV4(given) ? given.toLowerCase() : undefined

export const installRefs = (installId: string | undefined): OwnerRef[] =>
  installId === undefined ? [] : [{ installId }]

/**
 * Runs before the install gets the subscriptions that these requests name: retires the one it had, which also makes
 * room.
 */
export function retirePreviousSubscription(
  state: WorkingSet,
  installId: string | undefined,
  requests: readonly SubscriptionRequest[],
  now: string,
  authority: Authority,
): void {
  const holder = installId === undefined ? undefined : state.findByInstall(installId)
  if (!holder) return
  const named = requests
    .filter(({ kind }) => kind === undefined || !isAddressType(kind.type))
    .map((request) => findRequestedSubscription(state, request, authority))
    .filter((known) => known === undefined || !isAddressType(known.type))
  if (named.length === 0 || named.some((known) => known?.id === holder.id)) return
  state.putSubscription({ ...holder, installId: null, notificationTypes: RETIRED, updatedAt: now })
}

/** Assigns the install to the last push subscription of a request. */
export function assignInstall(
  state: WorkingSet,
  installId: string | undefined,
  subscriptions: readonly Subscription[],
  now: string,
): void {
  const current = subscriptions.findLast(({ id, type }) => !isAddressType(type) && state.subscriptions.has(id))
  if (installId === undefined || !current) return
  const holder = state.findByInstall(installId)
  if (holder?.id === current.id) return
  // The request names the previous one too, so it is still in use and is not retired.
  if (holder) state.putSubscription({ ...holder, installId: null, updatedAt: now })
  state.putSubscription({ ...(state.subscriptions.get(current.id) as Subscription), installId, updatedAt: now })
}
