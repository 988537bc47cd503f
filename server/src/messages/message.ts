// A message: its audience, its options and its state. This is the row of `messages`.

import type { Id, SubscriptionId } from '../lib/ids.ts'
import type { JobLane } from '../queue/job.ts'
import type { SegmentFilter } from '../segments/filters/tree.ts'
import type { SegmentId } from '../segments/segment.ts'
import type { ContentChannel, ContentFields } from '../templates/content.ts'
import type { EmailHtml } from '../templates/content-sources.ts'
import type { TemplateId } from '../templates/template.ts'

export { type JobLane, lanes } from '../queue/job.ts'

export type MessageId = Id<'message'>
export type RunId = Id<'run'>

/** The run of deliveries that belong to no journey. */
export const NO_RUN: RunId = '00000000-0000-0000-0000-000000000000'

export type MessageState = 'scheduled' | 'expanding' | 'sending' | 'done' | 'canceled'

/** `filters`: as they were when the message was accepted, even if the segment changes later. */
export type NamedSegment = { id: SegmentId; name: string; filters?: SegmentFilter[] }

/**
 * Whom a message is for, in one of several ways. `field` is the name that the request used, which the answer uses too.
 * Segments and filters are read by ranges of subscriptions; the others name each recipient.
 */
export type Audience =
  | { kind: 'segments'; included: NamedSegment[]; excluded: NamedSegment[] }
  | { kind: 'filters'; filters: SegmentFilter[]; excluded: NamedSegment[] }
  | { kind: 'aliases'; field: 'include_aliases' | 'include_external_user_ids'; aliases: Record<string, string[]> }
  /**
   * Also the result of resolving tokens, email addresses and phone numbers when the message was accepted. `given` holds
   * those, and is empty if the request named the ids themselves.
   */
  | { kind: 'subscriptions'; field: string; given: string[]; ids: SubscriptionId[] }
  /** All devices that show a live activity, if they are too many to be named. */
  | { kind: 'activity'; activityId: string }
  /** Recipients are added one by one, each in a run, while the message is open: until `until`, in ISO 8601. */
  | { kind: 'recipients'; until: string }

/** What a live activity on iOS shows. Times are in Unix seconds, except `at`, which is in ISO 8601. */
export type LiveActivity = {
  event: 'start' | 'update' | 'end'
  id: string
  /** For `start`: the kind of activity, and its fixed attributes. */
  type?: string
  attributes?: Record<string, unknown>
  state: Record<string, unknown>
  at: string
  staleAt?: number
  dismissAt?: number
  relevanceScore?: number
}

/** Times in ISO 8601. Each stage begins when the one before has ended, or later. */
export type WarmUpStage = { start: string; end: string; quota: number; acked: boolean }
export type WarmUp = { strategy: 'recommended' | 'custom'; stages: WarmUpStage[] }

export type MessageOptions = {
  /** Seconds from the due time until a delivery expires. */
  ttl: number
  /** The provider's priority, from 1 to 10, which may wake the device. It does not affect our own order. */
  priority: number
  /** Each recipient gets the message at the same hour: of their own time zone, or of their last activity. */
  delayedOption?: 'timezone' | 'last-active'
  /**
   * Seconds after midnight, for `timezone`; defaults to the time of day of `sendAfter`. `timeOfDayGiven` is the
   * original text, for display.
   */
  timeOfDay?: number
  timeOfDayGiven?: string
  /** 0 means not throttled, whatever the app's setting is. */
  throttlePerMinute?: number
  /** False sends this message regardless of the frequency cap. */
  frequencyCap?: boolean
  /** Deliveries with unknown outcomes are sent again. */
  atLeastOnce?: boolean
  /** Sent only to test users, and left out of metrics and limits. */
  isTest?: boolean
  /** For push: the types of subscription it goes to, if not all. */
  platforms?: string[]
  /** For email: also send to recipients who have unsubscribed. */
  includeUnsubscribed?: boolean
  customData?: Record<string, unknown>
  /** For email: introduces a new domain to mail servers gradually. */
  warmUp?: WarmUp
  /** The message updates this live activity, by the activity's token, instead of showing a notification. */
  activity?: LiveActivity
  /** What the template contributes besides its content, as it was when the message was accepted. */
  template?: { name: string; dynamicContent: string | null }
}

export type Message = {
  id: MessageId
  channel: ContentChannel
  kind: 0 | 1 | 3
  isListed: boolean
  lane: JobLane
  state: MessageState
  name: string | null
  templateId: TemplateId | null
  audience: Audience
  content: ContentFields
  emailHtml: EmailHtml
  options: MessageOptions
  queuedAt: Date
  sendAfter: Date
  expandAt: Date | null
  expandedTo: SubscriptionId | null
  expandedCount: number
  completedAt: Date | null
  canceledAt: Date | null
}

/** A message that is about to be stored. */
export type NewMessage = Pick<
  Message,
  | 'id'
  | 'channel'
  | 'kind'
  | 'isListed'
  | 'lane'
  | 'name'
  | 'templateId'
  | 'audience'
  | 'content'
  | 'emailHtml'
  | 'options'
  | 'sendAfter'
>

/** The fields that identify a repeated request. Each of the two has its own key space. */
export const idempotencyKeyNames = ['idempotency_key', 'external_id'] as const
export type IdempotencyKey = { name: (typeof idempotencyKeyNames)[number]; key: string }
