// A stored in-app message, and its representation for its author.

import { AppError } from '../lib/errors.ts'
import type { Id } from '../lib/ids.ts'
import type { SegmentId } from '../segments/segment.ts'
import type { SubscriptionType } from '../users/subscriptions/subscription.ts'
import type { DisplayLocation } from './bridge.ts'
import type { InAppContent } from './content.ts'
import type { Trigger } from './triggers.ts'

export type InAppMessageId = Id<'in-app message'>
export type VariantId = Id<'in-app variant'>

export const STATES = ['draft', 'live', 'paused', 'archived'] as const
export type InAppState = (typeof STATES)[number]

/** The states that each state can change to. An archived message is kept for its counts and never shown again. */
export const NEXT_STATES: Record<InAppState, readonly InAppState[]> = {
  draft: ['live', 'archived'],
  live: ['paused', 'archived'],
  paused: ['live', 'archived'],
  archived: [],
}

export const PLATFORMS = ['ios', 'android', 'web'] as const
export type InAppPlatform = (typeof PLATFORMS)[number]

export const AUDIENCES = ['segments', 'granted'] as const
export type InAppAudience = (typeof AUDIENCES)[number]

/** What an author configures, except the name, the state and the content. */
export type InAppSettings = {
  displayLocation: DisplayLocation
  displayDuration: number | null
  removeHeightMargin: boolean
  removeWidthMargin: boolean
  triggers: Trigger[][]
  audience: InAppAudience
  includedSegments: SegmentId[]
  excludedSegments: SegmentId[]
  /** When empty, all platforms. */
  platforms: InAppPlatform[]
  redisplayLimit: number | null
  redisplayDelay: number | null
  startTime: Date | null
  endTime: Date | null
}

export type InAppMessage = InAppSettings & {
  id: InAppMessageId
  name: string
  state: InAppState
  hasLiquid: boolean
  clickLabels: string[]
  pageLabels: string[]
  createdAt: Date
  updatedAt: Date
}

export type InAppSummary = Pick<
  InAppMessage,
  'id' | 'name' | 'state' | 'startTime' | 'endTime' | 'createdAt' | 'updatedAt'
>

export type InAppVariant = { id: VariantId; language: string; content: InAppContent }

export const inAppMessageNotFound = () =>
  new AppError('not-found', { code: 'in-app-0', title: 'in-app message not found' })

/**
 * The platform whose app shows messages to the subscription; undefined when the subscription belongs to no such app.
 */
export function platformOf(type: SubscriptionType): InAppPlatform | undefined {
  switch (type) {
    case 'iOSPush':
      return 'ios'
    case 'AndroidPush':
    case 'FireOSPush':
    case 'HuaweiPush':
      return 'android'
    case 'ChromePush':
    case 'FirefoxPush':
    case 'SafariPush':
    case 'SafariLegacyPush':
    case 'WindowsPush':
      return 'web'
    default:
      return undefined
  }
}

const time = (at: Date | null) => at?.toISOString() ?? null

export const summaryObject = (it: InAppSummary) => ({
  id: it.id,
  name: it.name,
  state: it.state,
  is_active: it.state === 'live',
  start_time: time(it.startTime),
  end_time: time(it.endTime),
  created_at: it.createdAt.toISOString(),
  updated_at: it.updatedAt.toISOString(),
})

export const messageObject = (it: InAppMessage, variants: readonly InAppVariant[]) => ({
  ...summaryObject(it),
  contents: Object.fromEntries(variants.map(({ language, content }) => [language, content])),
  variants: Object.fromEntries(variants.map(({ language, id }) => [language, id])),
  has_liquid: it.hasLiquid,
  display_location: it.displayLocation,
  display_duration: it.displayDuration,
  styles: { remove_height_margin: it.removeHeightMargin, remove_width_margin: it.removeWidthMargin },
  triggers: it.triggers,
  audience: it.audience,
  included_segments: it.includedSegments,
  excluded_segments: it.excludedSegments,
  platforms: it.platforms,
  redisplay: it.redisplayLimit === null ? null : { limit: it.redisplayLimit, delay: it.redisplayDelay },
})
