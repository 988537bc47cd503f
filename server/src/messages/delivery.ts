// One message to one subscription: which states it goes through, and in which line it waits.

import type { InboxProvider } from '../email/inbox-providers/providers.ts'
import type { SubscriptionId } from '../lib/ids.ts'
import type { SubscriptionType } from '../users/subscriptions/subscription.ts'
import { type Lane, lanes, type MessageId, type RunId } from './message.ts'

/** The type of the subscription that it goes to. */
export type Platform = SubscriptionType

/** What a mail is counted under, beside its message. */
export type CountedUnder = { sendingDomain: string | null; inboxProvider: InboxProvider | null }

/** What names one delivery; its month comes first, so that one partition is looked at. */
export type DeliveryKey = { expandAt: Date; messageId: MessageId; subscriptionId: SubscriptionId; runId: RunId }

export const deliveryStates = ['pending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export const providers = ['web-push', 'apns', 'safari', 'fcm', 'huawei', 'adm', 'wns', 'email', 'sms'] as const
export type Provider = (typeof providers)[number]

/** Who brings it there. Types without one are decided as skipped: their services are not spoken. */
const providerOfType: Partial<Record<SubscriptionType, Provider>> = {
  iOSPush: 'apns',
  macOSPush: 'apns',
  SafariLegacyPush: 'safari',
  AndroidPush: 'fcm',
  HuaweiPush: 'huawei',
  FireOSPush: 'adm',
  WindowsPush: 'wns',
  ChromePush: 'web-push',
  FirefoxPush: 'web-push',
  SafariPush: 'web-push',
  Email: 'email',
  SMS: 'sms',
}

export const providerOf = (type: SubscriptionType): Provider | undefined => providerOfType[type]

/** Parts of a line can be worked through side by side, by one server or several. */
export const PARTS = 4

/** The name of a line, and the key of the job that works through it. */
export const lineOf = (lane: Lane, provider: Provider, part: number) => `${lane}/${provider}/${part}`

export type Line = { lane: Lane; provider: Provider; part: number }

export function readLine(name: string): Line {
  const [lane, provider, part] = name.split('/')
  return { lane: lane as Lane, provider: provider as Provider, part: Number(part) }
}

/** What all parts of it share: lane and provider. */
export const beginningOf = (line: string) => line.slice(0, line.lastIndexOf('/') + 1)

/** Of those that are never sent. */
export const NO_LINE = 'none'

export const linesOf = (provider: Provider): string[] =>
  lanes.flatMap((lane) => Array.from({ length: PARTS }, (_, part) => lineOf(lane, provider, part)))

/**
 * Counts are kept in parts, so that no two workers wait for each other: one for each part of the lines, one each for those who
 * write deliveries and who close those of a canceled message, and one for each of those who add recipients. A part alone may be below
 * zero; their sum is the count.
 */
export const EXPANDING_PART = PARTS
export const CLOSING_PART = PARTS + 1
export const addingPart = (n: number) => PARTS + 2 + n
