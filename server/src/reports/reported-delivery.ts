// A delivery of a message, as reports show it.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { DeliveryState } from '../messages/delivery.ts'
import type { MessageId, RunId } from '../messages/message.ts'

/** A message that was expanded, so that it can have deliveries. */
export type ExpandedMessage = { id: MessageId; expandAt: Date }

export type DeliveryView = {
  subscriptionId: SubscriptionId
  runId: RunId
  userId: UserId
  platform: string
  /** The state that is shown: a pending delivery whose batch is being sent is `sending`. */
  state: DeliveryState | 'sending'
  reason: string | null
  attempts: number
  providerRef: string | null
  dueAt: Date
  expiresAt: Date
  settledAt: Date | null
  receivedAt: Date | null
  clickedAt: Date | null
  /** Email only. */
  inboxProvider: string | null
  deliveredAt: Date | null
  openedAt: Date | null
  bouncedAt: Date | null
  complainedAt: Date | null
  unsubscribedAt: Date | null
}

/** The position of a delivery among those of its message. */
export type ReportCursor = Pick<DeliveryView, 'subscriptionId' | 'runId'>
