// Unsubscribes addresses that the provider calls gone, unless they were registered again meanwhile.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { unsubscribeAddress } from '../../users/subscriptions/unsubscribe-address.ts'
import type { ComposedDelivery } from '../engine/channel.ts'
import type { Engine } from '../engine/types.ts'
import type { Attempt } from './batch.ts'

/** The notification type for an app that was uninstalled or blocked. */
const UNINSTALLED = -10

/** A failure here is harmless: the next message finds the address gone again. */
export async function unsubscribeGone(
  { db, change, log }: Pick<Engine, 'db' | 'change' | 'log'>,
  { appId, channel }: Pick<Attempt, 'appId' | 'channel'>,
  sent: readonly ComposedDelivery[],
  outcomes: readonly ChannelOutcome[],
): Promise<void> {
  const changes = sent.flatMap((delivery, i): Promise<unknown>[] => {
    const outcome = outcomes[i]
    const { subscriptionId, token } = delivery.due
    if (outcome?.kind !== 'gone' || token === null) return []
    const deleted = channel.deleteGone?.(db, appId, delivery)
    if (deleted) return [deleted]
    const { reason, since } = outcome
    const notificationTypes = ownProperty(channel.goneNotificationTypes ?? {}, reason) ?? UNINSTALLED
    return [unsubscribeAddress(change, appId, subscriptionId, { token, notificationTypes, since })]
  })
  for (const result of await Promise.allSettled(changes))
    if (result.status === 'rejected')
      log.warn({ appId, reason: String(result.reason) }, 'Could not unsubscribe a gone address')
}
