// An event webhook: its state, and its representation in answers.

import { AppError } from '../lib/errors.ts'
import type { Id } from '../lib/ids.ts'
import type { DeliveryEvent, EventKind } from '../messages/feedback/delivery-event.ts'
import type { SignedReceiver } from '../sending/signed-receivers.ts'
import type { WebhookAnswer } from './webhook-schema.ts'

export type WebhookId = Id<'event webhook'>

/** `gone`: the receiver answered that it no longer exists. `failing`: no request succeeded for days. */
export type DisabledReason = 'gone' | 'failing' | 'switched off'

export type Webhook = SignedReceiver & {
  id: WebhookId
  kinds: EventKind[]
  disabledAt: Date | null
  disabledReason: DisabledReason | null
  failingSince: Date | null
  failures: number
  lastFailure: string | null
  nextTryAt: Date | null
  dropped: number
}

/** An event that waits to be sent. */
export type StoredEvent = {
  id: string
  kind: EventKind
  at: Date
  messageId: DeliveryEvent['messageId']
  /** Null in an event about a message, which has a count instead. */
  subscriptionId: DeliveryEvent['subscriptionId'] | null
  userId: DeliveryEvent['userId'] | null
  platform: DeliveryEvent['platform'] | null
  reason: string | null
  count: number | null
}

/** The state after a success. */
export const NOT_FAILING = { failingSince: null, failures: 0, lastFailure: null, nextTryAt: null }

export const webhookNotFound = () =>
  new AppError('not-found', { code: 'event-webhook-0', title: 'Event webhook not found' })

export const webhookObject = (it: Webhook): WebhookAnswer => ({
  id: it.id,
  url: it.url,
  kinds: it.kinds,
  enabled: it.disabledAt === null,
  disabled_at: it.disabledAt?.toISOString() ?? null,
  disabled_reason: it.disabledReason,
  failing_since: it.failingSince?.toISOString() ?? null,
  last_failure: it.lastFailure,
  next_try_at: it.nextTryAt?.toISOString() ?? null,
  dropped_events: it.dropped,
  created_at: it.createdAt.toISOString(),
  updated_at: it.updatedAt.toISOString(),
})
