// Delivery events: what event webhooks receive about deliveries.

import type { SubscriptionId, UserId } from '../../lib/ids.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import type { MessageId } from '../message.ts'

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
  'message.unknown',
] as const
export type EventKind = (typeof eventKinds)[number]

/** An event about a message: how many of its deliveries have unknown outcomes. */
export type UnknownEvent = { messageId: MessageId; count: number; at: Date }

export type DeliveryEvent = {
  kind: Exclude<EventKind, 'message.unknown'>
  at: Date
  /** Null if no particular message caused the event. */
  messageId: MessageId | null
  subscriptionId: SubscriptionId
  userId: UserId
  platform: SubscriptionType
  reason?: string | undefined
}
