// One message to one subscription: which states it goes through, and in which line it waits.

import { type PushProviderName, pushCatalog, pushProviderNames } from '../channels/push/catalog.ts'
import type { InboxProvider } from '../email/inbox-providers/providers.ts'
import type { SubscriptionId } from '../lib/ids.ts'
import type { SubscriptionType } from '../users/subscriptions/subscription.ts'
import { type JobLane, lanes, type MessageId, type RunId } from './message.ts'

/** The type of the subscription that it goes to. */
export type Platform = SubscriptionType

/** What a mail is counted under, beside its message. */
export type EmailDimensions = { sendingDomain: string | null; inboxProvider: InboxProvider | null }

/** What names one delivery; its month comes first, so that one partition is looked at. */
export type DeliveryKey = { expandAt: Date; messageId: MessageId; subscriptionId: SubscriptionId; runId: RunId }

export const deliveryStates = ['pending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export type Provider = PushProviderName | 'email' | 'sms'
export const providers: readonly Provider[] = [...pushProviderNames, 'email', 'sms']

/** Who delivers to subscriptions of a type. Types without a provider are skipped: nobody serves their devices any more. */
const providerOfType = new Map<string, Provider>([
  ...pushProviderNames.flatMap((name) => pushCatalog[name].subscriptionTypes.map((type) => [type, name] as const)),
  ['Email', 'email'],
  ['SMS', 'sms'],
])

export const providerOf = (type: SubscriptionType): Provider | undefined => providerOfType.get(type)

/** Parts of a line can be worked through side by side, by one server or several. */
export const SHARD_COUNT = 4

/** The name of a line, and the key of the job that works through it. */
export const shardOf = (lane: JobLane, provider: Provider, part: number) => `${lane}/${provider}/${part}`

export type Shard = { lane: JobLane; provider: Provider; number: number }

export function parseShard(name: string): Shard {
  const [lane, provider, part] = name.split('/')
  return { lane: lane as JobLane, provider: provider as Provider, number: Number(part) }
}

/** What all parts of it share: lane and provider. */
export const shardPrefixOf = (shard: string) => shard.slice(0, shard.lastIndexOf('/') + 1)

/** Of those that are never sent. */
export const NO_SHARD = 'none'

export const shardsOf = (provider: Provider): string[] =>
  lanes.flatMap((lane) => Array.from({ length: SHARD_COUNT }, (_, part) => shardOf(lane, provider, part)))

/**
 * Counts are kept in parts, so that no two workers wait for each other: one for each part of the lines, one each for those who
 * write deliveries and who close those of a canceled message, and one for each of those who add recipients. A part alone may be below
 * zero; their sum is the count.
 */
export const EXPAND_COUNT_PART = SHARD_COUNT
export const CLOSE_COUNT_PART = SHARD_COUNT + 1
export const recipientCountPart = (n: number) => SHARD_COUNT + 2 + n
