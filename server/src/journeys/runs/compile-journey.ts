// A journey in the form that advancing its runs needs.

import type { SegmentId } from '../../segments/segment.ts'
import type { Journey, JourneyAudience, JourneyId } from '../journey.ts'
import { allNodes, type JourneyNode } from '../nodes/kinds.ts'
import { compileProgram, type Program } from './program.ts'

export type ExitRules = {
  /** A user leaves when they are in one of these. */
  segmentIds: SegmentId[]
  whenNotInAudience: boolean
  onSession: boolean
  eventName: string | undefined
  tags: Record<string, string>
  /** Whether memberships have to be found at every step. */
  looksAtSegments: boolean
}

export type CompiledJourney = {
  id: JourneyId
  name: string
  version: number
  audience: JourneyAudience
  exit: ExitRules | undefined
  /** When a user may enter again; undefined: never or, for event audiences, at any time. */
  reentrySeconds: number | undefined
  startedAt: Date | null
  program: Program
  nodes: JourneyNode[]
}

export function compileJourney({ id, version, startedAt, document }: Journey): CompiledJourney {
  const { name, audience, early_exit: early, reentry_rules: reentry, nodes } = document
  return {
    id,
    name,
    version,
    audience,
    exit: early ? exitOf(early) : undefined,
    reentrySeconds: audience.kind === 'segment' ? reentry?.duration_seconds : undefined,
    startedAt,
    program: compileProgram(nodes),
    nodes: allNodes(nodes),
  }
}

function exitOf({ rules, tag_on_early_exit: tags }: NonNullable<Journey['document']['early_exit']>): ExitRules {
  const segmentIds = rules.on_segment?.included_segment_ids ?? []
  return {
    segmentIds,
    whenNotInAudience: rules.when_not_in_audience,
    onSession: rules.on_session,
    eventName: rules.on_event?.name,
    tags,
    looksAtSegments: segmentIds.length > 0 || rules.when_not_in_audience,
  }
}
