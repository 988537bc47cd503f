// What comes back of deliveries, and is counted beside their states.

import type { SubscriptionId, UserId } from '../../lib/ids.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import type { MessageId, RunId } from '../message.ts'

/** Of a delivery, without its app. */
export type DeliveryKey = { expandAt: Date; messageId: MessageId; subscriptionId: SubscriptionId; runId: RunId }

/** A delivery that somebody has something to tell of. */
export type FeedbackDelivery = DeliveryKey & { userId: UserId; platform: SubscriptionType }

/**
 * `received` and `clicked` count deliveries, `clicks` counts every click. The `provider_` ones are what providers of texts report:
 * it was delivered, it was not, or they do not know. The rest is of email; like `clicks`, `opens` counts every time, and the
 * `machine_` ones say how many of them programs made that look at mail before people do.
 */
export type Fact =
  | 'received'
  | 'clicked'
  | 'clicks'
  | 'provider_successful'
  | 'provider_failed'
  | 'provider_errored'
  | 'delivered'
  | 'opened'
  | 'opens'
  | 'bounced'
  | 'complained'
  | 'unsubscribed'
  | 'machine_opens'
  | 'machine_clicks'

export type FactCount = { messageId: MessageId; platform: SubscriptionType; fact: Fact; count: number }

/** Adds up by message and platform, so that a batch writes each counter once. */
export function factCounter() {
  const counts = new Map<string, FactCount>()
  return {
    add({ messageId, platform }: Pick<FeedbackDelivery, 'messageId' | 'platform'>, fact: Fact, count = 1) {
      const key = `${messageId} ${platform} ${fact}`
      const entry = counts.get(key) ?? { messageId, platform, fact, count: 0 }
      entry.count += count
      counts.set(key, entry)
    },
    list: (): FactCount[] => [...counts.values()].filter(({ count }) => count !== 0),
  }
}
