// What becomes of a message, as those are told who asked for it.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { SubscriptionType } from '../users/subscription.ts'
import type { MessageId } from './message.ts'

export const eventKinds = [
  'sent',
  'failed',
  'delivered',
  'received',
  'opened',
  'clicked',
  'bounced',
  'complained',
  'unsubscribed',
] as const
export type EventKind = (typeof eventKinds)[number]

export type DeliveryEvent = {
  kind: EventKind
  at: Date
  /** Null where no message in particular led to it. */
  messageId: MessageId | null
  subscriptionId: SubscriptionId
  userId: UserId
  platform: SubscriptionType
  reason?: string | undefined
}
