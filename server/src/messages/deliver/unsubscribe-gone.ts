// Addresses that lead nowhere any more are unsubscribed, unless they were registered again.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { unsubscribeAddress } from '../../users/subscriptions/unsubscribe-address.ts'
import { tokenNameOf } from '../activities/resolve-tokens.ts'
import { deleteTokens } from '../activities/store.ts'
import type { Engine } from '../engine/engine.ts'
import { OTHER_SENDER } from '../push/quarantine.ts'
import { OPTED_OUT } from '../reasons.ts'
import type { ComposedDelivery } from './compose.ts'

/** By the provider's word. -10, which stands for all others, is: uninstalled, or blocked. */
const NOTIFICATION_TYPES: Readonly<Record<string, number>> = {
  BadDeviceToken: -14,
  DeviceTokenNotForTopic: -16,
  [OTHER_SENDER]: -6,
  [OPTED_OUT]: -2,
}

/** What fails here is found out again by the next message. */
export async function unsubscribeGone(
  { db, change, log }: Engine,
  appId: AppId,
  sent: readonly ComposedDelivery[],
  outcomes: readonly ChannelOutcome[],
) {
  const drops = sent.flatMap(({ due, message }, i): Promise<unknown>[] => {
    const outcome = outcomes[i]
    if (outcome?.kind !== 'gone' || due.token === null) return []
    const { activity } = message.options
    // The device is still there; only this activity is not.
    if (activity) {
      const { subscriptionId, token } = due
      return [deleteTokens(db, appId, [{ ...tokenNameOf(activity), subscriptionId, token }])]
    }
    const { reason, since } = outcome
    const notificationTypes = ownProperty(NOTIFICATION_TYPES, reason) ?? -10
    return [unsubscribeAddress(change, appId, due.subscriptionId, { token: due.token, notificationTypes, since })]
  })
  for (const result of await Promise.allSettled(drops))
    if (result.status === 'rejected')
      log.warn({ appId, reason: String(result.reason) }, 'an address was not unsubscribed')
}
