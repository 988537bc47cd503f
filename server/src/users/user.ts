// A user with everything it owns, as plain values, and how a request points at one.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { UserRef } from './aliases/identity.ts'
import type { StoredProperties, StoredPurchase } from './properties/stored.ts'
import type { Subscription, SubscriptionType } from './subscriptions/subscription.ts'

export type User = {
  id: UserId
  properties: StoredProperties
  aliases: Map<string, string>
  /** In order of creation. */
  subscriptions: Map<SubscriptionId, Subscription>
  createdAt: string
}

/** Anything by which a request can point at a user. */
export type OwnerRef =
  | UserRef
  | { subscriptionId: SubscriptionId }
  | { type: SubscriptionType; tokenHash: string }
  | { installId: string }

export type NewPurchases = { userId: UserId; purchases: StoredPurchase[] }
