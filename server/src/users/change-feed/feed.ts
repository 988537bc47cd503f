import type { UserId } from '../../lib/ids.ts'

/**
 * `change`: anything about a user that a segment can see. `session`: the user began one. `event`: a custom event of
 * that name. `action`: a message was received, opened or clicked.
 */
export type FeedKind = 'change' | 'session' | 'event' | 'action'

/** `name` is the name of an event; it is empty for the other kinds. */
export type FeedWatch = { kind: FeedKind; name: string }

export type NewFeedEntry = { userId: UserId; kind: Exclude<FeedKind, 'event'>; runId?: string | undefined }

export type FeedEvent = { id: string; name: string; at: Date; properties: object }

export type FeedEntry = {
  id: string
  userId: UserId
  kind: FeedKind
  runId: string | null
  /** Only for the kind `event`. */
  event: FeedEvent | null
  /** When the server learned of it; the event itself says when it happened. */
  at: Date
}
