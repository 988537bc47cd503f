// A message that is ready to be stored, and the result of storing it.

import type { SubscriptionId, UserId } from '../../lib/ids.ts'
import type { IdempotencyKey, MessageId, NewMessage } from '../message.ts'

/** A user by id or alias, or a subscription. */
export type MessageTarget = { id: UserId } | { label: string; value: string } | { subscriptionId: SubscriptionId }

/**
 * The idempotency keys of a request, and a hash of everything else in it; the hash is empty where there are no keys.
 */
export type RequestKeys = { keys: IdempotencyKey[]; requestHash: string }

export type Submission = RequestKeys & {
  message: NewMessage
  /** The types of subscription that the message can go to. */
  types: readonly string[]
  /** Undefined for segments and filters, which name no recipients. */
  targets: readonly MessageTarget[] | undefined
}

/** `recipients` is null for messages that name no targets; `unsubscribed` holds indexes into the targets. */
export type AcceptedMessage = { id: MessageId; recipients: number | null; unsubscribed: number[]; isReplay: boolean }
