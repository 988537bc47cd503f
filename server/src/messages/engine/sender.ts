// What the engine asks of the world: to bring finished messages to addresses. The composition answers with the channels.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { EmailContent, EmailItem } from '../../channels/email/message.ts'
import type { PushContent } from '../../channels/push/content.ts'
import type { AppId } from '../../lib/ids.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import type { Provider, Shard } from '../delivery.ts'
import type { LiveActivity, MessageId } from '../message.ts'

/** One message for one address. Those that say the same share one content object, so that it is put into a provider's words once. */
export type OutgoingMessage = { platform: SubscriptionType; token: string } & (
  | { kind: 'push'; content: PushContent; webAuth: string | null; webP256: string | null }
  | { kind: 'sms'; content: SmsContent }
  | ({ kind: 'email'; content: EmailContent } & EmailEnvelope)
  /** To the token of the activity, not to that of the subscription. */
  | { kind: 'activity'; content: ActivityContent }
)

/** What differs from one recipient of a mail to the next. */
export type EmailEnvelope = Omit<EmailItem, 'content' | 'to' | 'source'>

export type SmsContent = { messageId: MessageId; text: string; from: string | undefined; mediaUrls: readonly string[] }

export type ActivityContent = {
  messageId: MessageId
  activity: LiveActivity
  expiresAt: Date
  priority: number
  alert: { title: string | undefined; body: string | undefined; sound: string | undefined } | undefined
}

export type DeliverySender = {
  /** The providers that the app can send through: the server speaks to them, and the app has given its credentials. */
  ready(appId: AppId): Promise<ReadonlySet<Provider>>
  /** One outcome for each parcel, in their order. */
  send(
    appId: AppId,
    line: Pick<Shard, 'provider' | 'lane'>,
    parcels: readonly OutgoingMessage[],
  ): Promise<ChannelOutcome[]>
}
