// What the change feed holds.

import type { UserId } from '../../lib/ids.ts'

/**
 * `change`: anything about a user that a segment can see. `session`: the user began one. `event`: a custom event of that name.
 * `action`: a message was received, opened or clicked.
 */
export type FeedKind = 'change' | 'session' | 'event' | 'action'

/** The name of an event; the other kinds have an empty one. */
export type FeedWatch = { kind: FeedKind; name: string }

export type NewFeedEntry = { userId: UserId; kind: Exclude<FeedKind, 'event'>; runId?: string | undefined }

export type FeedEvent = { id: string; name: string; at: Date; properties: object }

export type FeedEntry = {
  id: string
  userId: UserId
  kind: FeedKind
  runId: string | null
  /** Of kind `event` alone. */
  event: FeedEvent | null
  /** When we learned of it; when it happened is in the event. */
  at: Date
}
