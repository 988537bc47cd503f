// An export: the request, and the progress of its file.

import type { Id } from '../lib/ids.ts'
import type { MessageId } from '../messages/message.ts'
import type { SegmentFilter } from '../segments/filters/tree.ts'

export type ExportId = Id<'export'>

export type SubscriptionsRequest = {
  kind: 'subscriptions'
  extraFields: string[]
  /** ISO 8601. */
  lastActiveSince?: string
  /** The filters of the segment, as they were when the export was requested. */
  filters?: SegmentFilter[]
  /** Only those subscriptions of the segment that can be sent to. */
  isSubscribedOnly?: true
}
export type HistoryRequest = { kind: 'history'; messageId: MessageId; events: 'sent' | 'clicked' }
export type ActivityRequest = { kind: 'activity'; messageId: MessageId }

export type ExportRequest = SubscriptionsRequest | HistoryRequest | ActivityRequest
export type ExportKind = ExportRequest['kind']

export type Export = {
  id: ExportId
  request: ExportRequest
  state: 'making' | 'ready' | 'failed'
  secretHash: Buffer
  /** The position of the last row in the file. */
  progress: unknown
  chunkCount: number
  byteCount: number
  rowCount: number
  endedAt: Date | null
}
