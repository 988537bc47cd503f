// What a message channel adds to the engine. The engine knows channels only by this type;
// composition/message-channels.ts lists them.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/db.ts'
import type { Sql } from '../../storage/sql.ts'
import type { ContentFields } from '../../templates/content.ts'
import type { DeliveryChange, DueDelivery, ExpectedState, ExpiredDelivery, SentMessage } from '../deliver/store.ts'
import type { EmailDimensions, Provider } from '../delivery.ts'
import type { Message, MessageId } from '../message.ts'
import type { OutgoingMessage } from '../outgoing-message.ts'

/** In the direct lane, `db` is the pool reserved for it. */
export type ChannelContext = { db: Db; clock: Clock; log: Log }

/** The text of each field, rendered, in the recipient's language. */
export type RenderedTexts = Readonly<Record<string, string>>

/** What a channel found out about a delivery. The engine reads these fields only; channels add their own. */
export type DeliveryDetails = {
  /** What the delivery is counted under beside its message. */
  dimensions?: EmailDimensions | undefined
  /** The reference that the message itself carries. Other providers return theirs when they accept the message. */
  reference?: string | undefined
  unsubscribeToken?(): string
}

/** A refused delivery is skipped for that reason. The token may differ from the subscription's. */
export type PreparedDelivery<Details> = { delivery: DueDelivery } & (
  | { details: Details; refusal?: undefined }
  | { details?: undefined; refusal: string }
)

export type ReadyDelivery<Details = DeliveryDetails> = { due: DueDelivery; message: SentMessage; details: Details }
export type ComposedDelivery<Details = DeliveryDetails> = ReadyDelivery<Details> & { outgoing: OutgoingMessage }

/** A composed delivery, the provider's answer and what the delivery becomes. */
export type JudgedDelivery<Details = DeliveryDetails> = {
  delivery: ComposedDelivery<Details>
  outcome: ChannelOutcome
  change: DeliveryChange
}

export type RetryPolicy = { attempts: number; firstMs: number; longestMs: number }

/**
 * Content that deliveries share is made once: for one message, language and variant. Messages with Liquid get their own
 * content each.
 */
export type ShareContent = <Shared extends OutgoingMessage['content']>(variant: string, make: () => Shared) => Shared

export type ComposeContext = { appId: AppId; now: Date; share: ShareContent }

export type MessageChannel<Details extends DeliveryDetails = DeliveryDetails> = {
  /**
   * Looks up what sending will need and takes a while to get, before candidates become deliveries. Runs outside any
   * transaction.
   */
  prepareCandidates?(ctx: ChannelContext, candidates: Sql): Promise<void>

  /**
   * Returns a hold if the app may send nothing through this channel for now, with the time at which it ends, if that is
   * known.
   */
  findHold?(ctx: ChannelContext, appId: AppId): Promise<{ until?: Date } | undefined>

  /** Returns one result for each due delivery, in their order, before the engine decides what to do with it. */
  prepare(
    ctx: ChannelContext,
    appId: AppId,
    due: readonly DueDelivery[],
    messages: ReadonlyMap<MessageId, SentMessage>,
  ): Promise<PreparedDelivery<Details>[]>

  /**
   * Gets data that is too expensive to get for deliveries that may still be skipped. A delivery with an outcome here
   * ends as if its attempt had that outcome.
   */
  complete?(
    ctx: ChannelContext,
    appId: AppId,
    deliveries: readonly ReadyDelivery<Details>[],
  ): Promise<{
    complete: readonly ReadyDelivery<Details>[]
    failed: readonly { delivery: ReadyDelivery<Details>; outcome: ChannelOutcome }[]
  }>

  /** Whether recipients get different content by their language. Defaults to true. */
  variesByLanguage?(content: ContentFields): boolean

  compose(delivery: ReadyDelivery<Details>, texts: RenderedTexts, context: ComposeContext): OutgoingMessage

  retryPolicy?: RetryPolicy

  /** Corrects outcomes that mean something else when taken together. */
  reviewOutcomes?(db: Db, appId: AppId, provider: Provider, outcomes: ChannelOutcome[]): Promise<ChannelOutcome[]>

  /** Whether the provider refused the message for its recipient, which is reported as a bounce. */
  isBounce?(outcome: ChannelOutcome): boolean

  /**
   * Writes outcomes to the deliveries that are in the expected state, and returns the changes made. Left out:
   * `changeDeliveries`.
   */
  writeOutcomes?(
    db: Db,
    appId: AppId,
    judged: readonly JudgedDelivery<Details>[],
    expected: ExpectedState,
    now: Date,
  ): Promise<DeliveryChange[]>

  /** Updates the channel's own counts, in the transaction that writes the outcomes. */
  countOutcomes?(
    db: Db,
    appId: AppId,
    shardNumber: number,
    judged: readonly JudgedDelivery<Details>[],
    now: Date,
  ): Promise<void>

  /** Writes further consequences of the outcomes, at the end of the same transaction. */
  followOutcomes?(db: Db, appId: AppId, judged: readonly JudgedDelivery<Details>[], now: Date): Promise<void>

  /** Runs after the transaction, for work that may fail without undoing the outcomes. */
  afterOutcomes?(
    ctx: ChannelContext,
    appId: AppId,
    sent: readonly ComposedDelivery<Details>[],
    outcomes: readonly ChannelOutcome[],
  ): Promise<void>

  /** Counts and follows up deliveries that ended without being sent, in the transaction that ends them. */
  followUnsent?(db: Db, appId: AppId, shardNumber: number, ended: readonly UnsentDelivery[], now: Date): Promise<void>

  /**
   * The subscription's new notification types when the provider calls its address gone. Defaults to -10: uninstalled or
   * blocked.
   */
  goneNotificationTypes?: Readonly<Record<string, number>>

  /** Deletes a gone address that is not the subscription's own; returns undefined if it is. */
  deleteGone?(db: Db, appId: AppId, delivery: ReadyDelivery<Details>): Promise<unknown> | undefined
}

export type UnsentDelivery = Pick<
  ExpiredDelivery,
  'subscriptionId' | 'state' | 'reason' | 'attempts' | keyof EmailDimensions
>

export type MessageChannels = Readonly<Record<Message['channel'], MessageChannel>>
