// What is handed to a channel for one delivery. Types only.

import type { EmailContent, EmailItem } from '../channels/email/message.ts'
import type { PushContent } from '../channels/push/content.ts'
import type { SubscriptionType } from '../users/subscriptions/subscription.ts'
import type { LiveActivity, MessageId } from './message.ts'

/** Deliveries with the same content share one content object, so that it is translated for the provider only once. */
export type OutgoingMessage = { platform: SubscriptionType; token: string } & (
  | { kind: 'push'; content: PushContent; webAuth: string | null; webP256: string | null }
  | { kind: 'sms'; content: SmsContent }
  | ({ kind: 'email'; content: EmailContent } & EmailEnvelope)
  /** `token` belongs to the activity, not to the subscription. */
  | { kind: 'activity'; content: ActivityContent }
)

/** The fields that differ from one recipient of an email to the next. */
export type EmailEnvelope = Omit<EmailItem, 'content' | 'to' | 'source'>

export type SmsContent = { messageId: MessageId; text: string; from: string | undefined; mediaUrls: readonly string[] }

export type ActivityContent = {
  messageId: MessageId
  activity: LiveActivity
  expiresAt: Date
  priority: number
  alert: { title: string | undefined; body: string | undefined; sound: string | undefined } | undefined
}
