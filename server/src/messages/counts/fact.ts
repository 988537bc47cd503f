// Facts: what recipients and providers report about deliveries, counted beside their states.

import type { UserId } from '../../lib/ids.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import type { DeliveryKey } from '../delivery.ts'
import type { MessageId } from '../message.ts'

/** A delivery that feedback refers to. */
export type FeedbackDelivery = DeliveryKey & { userId: UserId; platform: SubscriptionType }

/**
 * `received` and `clicked` count deliveries, `clicks` counts every click. The `provider_` facts are what SMS providers
 * report: delivered, not delivered, not known. All others are about email: `opens` counts every open, and the
 * `machine_` facts count the opens and clicks of programs that scan email before people see it.
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

/** Sums up by message and platform, so that a batch writes each counter once. */
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
