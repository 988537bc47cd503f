// What a message is: its audience, its options, and where it stands. The row of `messages`, in our words.

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

/** Outside journeys a delivery belongs to no run. */
export const NO_RUN: RunId = '00000000-0000-0000-0000-000000000000'

export type MessageState = 'scheduled' | 'expanding' | 'sending' | 'done' | 'canceled'

/** `filters`: as they were when the message was accepted, whatever becomes of the segment. */
export type NamedSegment = { id: SegmentId; name: string; filters?: SegmentFilter[] }

/**
 * Who is meant, one way of naming them. `field` is the name that the request used for it, by which it is answered.
 * Segments and filters are read by ranges of subscriptions; the others name each recipient.
 */
export type Audience =
  | { kind: 'segments'; included: NamedSegment[]; excluded: NamedSegment[] }
  | { kind: 'filters'; filters: SegmentFilter[]; excluded: NamedSegment[] }
  | { kind: 'aliases'; field: 'include_aliases' | 'include_external_user_ids'; aliases: Record<string, string[]> }
  /**
   * Also what tokens, email addresses and phone numbers were resolved to when the message was accepted; those are `given`,
   * which is empty where the ids themselves were.
   */
  | { kind: 'subscriptions'; field: string; given: string[]; ids: SubscriptionId[] }
  /** All devices that show a live activity, where they are too many to be named. */
  | { kind: 'activity'; activityId: string }
  /** Who is added one by one, each in a run, while the message is open. Nobody is after `until`, in ISO 8601. */
  | { kind: 'recipients'; until: string }

/** What a live activity on iOS shows. Times are in Unix seconds, `at` in ISO 8601. */
export type LiveActivity = {
  event: 'start' | 'update' | 'end'
  id: string
  /** Of a start: the kind of activity, and what it is about. */
  type?: string
  attributes?: Record<string, unknown>
  state: Record<string, unknown>
  at: string
  staleAt?: number
  dismissAt?: number
  relevanceScore?: number
}

/** Times in ISO 8601; each stage begins when the one before has ended, or later. */
export type WarmUpStage = { start: string; end: string; quota: number; acked: boolean }
export type WarmUp = { strategy: 'recommended' | 'custom'; stages: WarmUpStage[] }

export type MessageOptions = {
  /** Seconds from due until it is too late. */
  ttl: number
  /** The provider's, not ours: from 1 to 10, which may wake the device. */
  priority: number
  /** Each at the same hour: of their own time zone, or of when they were last there. */
  delayedOption?: 'timezone' | 'last-active'
  /** Seconds after midnight, for `timezone`; without it the time of day of `sendAfter`. As it was given: for showing it. */
  timeOfDay?: number
  timeOfDayGiven?: string
  /** 0: not throttled, whatever the app's setting is. */
  throttlePerMinute?: number
  /** False: this message is sent however many went before. */
  frequencyCap?: boolean
  /** What may or may not have arrived is sent again. */
  atLeastOnce?: boolean
  /** To test users alone, outside metrics and limits. */
  isTest?: boolean
  /** Of push: which types of subscription, where not all. */
  platforms?: string[]
  /** Of email: also to those who do not want any. */
  includeUnsubscribed?: boolean
  customData?: Record<string, unknown>
  /** Of email: a new domain is made known to mail servers by and by. */
  warmUp?: WarmUp
  /** Shown by a live activity, to whose token it goes, instead of being a notification. */
  activity?: LiveActivity
  /** What the template brings beside its content, as it was then. */
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

/** A message on its way in. */
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

/** By which a request is recognized when it comes again; the two names are key spaces of their own. */
export const idempotencyKeyNames = ['idempotency_key', 'external_id'] as const
export type IdempotencyKey = { name: (typeof idempotencyKeyNames)[number]; key: string }
