// What reports tell of a message: its deliveries.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { DeliveryState } from '../messages/delivery.ts'
import type { MessageId, RunId } from '../messages/message.ts'

/** A message whose deliveries there are. */
export type ExpandedMessage = { id: MessageId; expandAt: Date }

export type DeliveryView = {
  subscriptionId: SubscriptionId
  runId: RunId
  userId: UserId
  platform: string
  /** As it is told: what is under way is pending, and being sent. */
  state: DeliveryState | 'sending'
  reason: string | null
  attempts: number
  providerRef: string | null
  dueAt: Date
  expiresAt: Date
  settledAt: Date | null
  receivedAt: Date | null
  clickedAt: Date | null
  /** Of email. */
  inboxProvider: string | null
  deliveredAt: Date | null
  openedAt: Date | null
  bouncedAt: Date | null
  complainedAt: Date | null
  unsubscribedAt: Date | null
}

/** Where a delivery stands among those of its message. */
export type ReportCursor = Pick<DeliveryView, 'subscriptionId' | 'runId'>
