// Deliveries: one message to one subscription, its state, and the shard in which it waits.

import { type PushProviderName, pushCatalog, pushProviderNames } from '../channels/push/catalog.ts'
import type { InboxProvider } from '../email/inbox-providers/providers.ts'
import type { SubscriptionId } from '../lib/ids.ts'
import type { ContentChannel } from '../templates/content.ts'
import type { SubscriptionType } from '../users/subscriptions/subscription.ts'
import { type JobLane, lanes, type MessageId, type RunId } from './message.ts'

/** The type of the subscription that the delivery goes to. */
export type Platform = SubscriptionType

/** What an email is counted under beside its message. */
export type EmailDimensions = { sendingDomain: string | null; inboxProvider: InboxProvider | null }

/** The key of a delivery. `expandAt` comes first, because it selects the partition. */
export type DeliveryKey = { expandAt: Date; messageId: MessageId; subscriptionId: SubscriptionId; runId: RunId }

export const deliveryStates = ['pending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export type Provider = PushProviderName | 'email' | 'sms'
export const providers: readonly Provider[] = [...pushProviderNames, 'email', 'sms']

/** Deliveries to types without a provider are skipped: the server does not support their services. */
const providerOfType = new Map<string, Provider>([
  ...pushProviderNames.flatMap((name) => pushCatalog[name].subscriptionTypes.map((type) => [type, name] as const)),
  ['Email', 'email'],
  ['SMS', 'sms'],
])

export const providerOf = (type: SubscriptionType): Provider | undefined => providerOfType.get(type)

export const channelOf = (provider: Provider): ContentChannel =>
  provider === 'email' || provider === 'sms' ? provider : 'push'

/** Shards of one lane and provider, which run in parallel on one server or several. */
export const SHARD_COUNT = 4

/** The name of a shard, and the key of its job. */
export const shardOf = (lane: JobLane, provider: Provider, number: number) => `${lane}/${provider}/${number}`

export type Shard = { lane: JobLane; provider: Provider; number: number }

export function parseShard(name: string): Shard {
  const [lane, provider, part] = name.split('/')
  return { lane: lane as JobLane, provider: provider as Provider, number: Number(part) }
}

/** Lane and provider, which the shards of one provider have in common. */
export const shardPrefixOf = (shard: string) => shard.slice(0, shard.lastIndexOf('/') + 1)

/** The shard of deliveries that are never sent. */
export const NO_SHARD = 'none'

export const shardsOf = (provider: Provider): string[] =>
  lanes.flatMap((lane) => Array.from({ length: SHARD_COUNT }, (_, part) => shardOf(lane, provider, part)))

/**
 * Each count is split into parts, so that no two workers wait for each other: one per shard number, one for expanding,
 * one for closing canceled messages, and one for each writer that adds recipients. A part alone may be negative; their
 * sum is the count.
 */
export const EXPAND_COUNT_PART = SHARD_COUNT
export const CLOSE_COUNT_PART = SHARD_COUNT + 1
export const recipientCountPart = (n: number) => SHARD_COUNT + 2 + n
