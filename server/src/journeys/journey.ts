// A journey as it is stored and answered. What authors send is stored in the names of the interface.

import { hash } from 'node:crypto'
import { AppError } from '../lib/errors.ts'
import type { AppId, Id } from '../lib/ids.ts'
import type { SegmentId } from '../segments/segment.ts'
import type { JourneyNode } from './nodes/kinds.ts'
import type { EventMatch } from './nodes/node.ts'

export type JourneyId = Id<'journey'>

export const JOURNEY_STATES = ['draft', 'scheduled', 'processing', 'active', 'archived'] as const
export type JourneyState = (typeof JOURNEY_STATES)[number]

export type JourneyAudience =
  | {
      kind: 'segment'
      included_segment_ids: SegmentId[]
      excluded_segment_ids: SegmentId[]
      future_additions_only: boolean
    }
  | ({ kind: 'event_trigger' } & EventMatch)

export type EarlyExit = {
  rules: {
    on_segment: { included_segment_ids: SegmentId[] } | null
    when_not_in_audience: boolean
    on_session: boolean
    on_event: { name: string } | null
  }
  tag_on_early_exit: Record<string, string>
}

export type JourneySchedule = { start_at: string | null; stop_at: string | null }

/** Everything that an author sends, except the state. */
export type JourneyDocument = {
  name: string
  description: string
  audience: JourneyAudience
  early_exit: EarlyExit | null
  reentry_rules: { duration_seconds: number } | null
  schedule: JourneySchedule | null
  nodes: JourneyNode[]
}

export type Journey = {
  id: JourneyId
  document: JourneyDocument
  state: JourneyState
  version: number
  createdSource: string
  scheduleError: string | null
  createdAt: Date
  updatedAt: Date
  startedAt: Date | null
  archivedAt: Date | null
}

export const DOCUMENT_DEFAULTS: Omit<JourneyDocument, 'name'> = {
  description: '',
  audience: { kind: 'segment', included_segment_ids: [], excluded_segment_ids: [], future_additions_only: false },
  early_exit: null,
  reentry_rules: null,
  schedule: null,
  nodes: [],
}

export const journeyNotFound = () =>
  new AppError('not-found', { code: 'journey-not-found', title: 'Journey not found' })

/** Names the version that a client has seen, and reveals nothing else. */
export const concurrencyKey = ({ id, version }: Pick<Journey, 'id' | 'version'>) =>
  hash('sha256', `journey ${id} ${version}`, 'base64url').slice(0, 22)

export type JourneySummary = Omit<Journey, 'document' | 'version' | 'scheduleError'> & { name: string }

export const summaryObject = (appId: AppId, it: JourneySummary) => ({
  id: it.id,
  app_id: appId,
  name: it.name,
  state: it.state,
  created_at: it.createdAt.toISOString(),
  updated_at: it.updatedAt.toISOString(),
  started_at: it.startedAt?.toISOString() ?? null,
  archived_at: it.archivedAt?.toISOString() ?? null,
  created_source: it.createdSource,
})

export const journeyObject = (appId: AppId, it: Journey) => {
  const { name, description, audience, early_exit, reentry_rules, schedule, nodes } = it.document
  return {
    ...summaryObject(appId, { ...it, name }),
    description,
    audience,
    early_exit,
    reentry_rules,
    schedule: schedule && { ...schedule, error: it.scheduleError },
    nodes,
    concurrency_key: concurrencyKey(it),
  }
}
