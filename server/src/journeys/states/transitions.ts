// The transitions between states, and what may be edited in each state. Pure rules; edits/update.ts applies them.

import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../../lib/errors.ts'
import type { JourneyDocument, JourneyState } from '../journey.ts'
import { allNodes, definitionOf, type JourneyNode } from '../nodes/kinds.ts'

/** The states that an author can request. Requesting `active` leads through `processing`. */
export const REQUESTABLE_STATES = ['draft', 'scheduled', 'active', 'archived'] as const
export type RequestableState = (typeof REQUESTABLE_STATES)[number]

const MOVES: Record<JourneyState, Partial<Record<RequestableState, JourneyState>>> = {
  draft: { active: 'processing', scheduled: 'scheduled' },
  scheduled: { draft: 'draft' },
  processing: { draft: 'draft', active: 'processing' },
  active: { archived: 'archived' },
  archived: {},
}

const notPossible = (title: string, field: string) => ({ code: 'journey-invalid-state', title, meta: { field } })

/** Requesting the current state changes nothing. */
export function nextState(state: JourneyState, wanted: JourneyState | undefined): JourneyState {
  if (wanted === undefined || wanted === state) return state
  const next = wanted === 'processing' ? undefined : MOVES[state][wanted]
  if (next === undefined) {
    const words = Object.keys(MOVES[state]).filter((word) => word !== 'active' || state === 'draft')
    const hint = words.length > 0 ? `; from ${state} it can go to ${words.join(' or ')}` : `; ${state} is final`
    throw new AppError('unprocessable', notPossible(`state cannot go from ${state} to ${wanted}${hint}`, 'state'))
  }
  return next
}

/** Throws with every edit that this state does not permit. */
export function checkEdits(state: JourneyState, before: JourneyDocument, after: JourneyDocument): void {
  const problems = refusedEdits(state, before, after).map(([field, why]) => notPossible(`${field} ${why}`, field))
  if (problems.length > 0) throw new AppError('unprocessable', ...problems)
}

type Refused = [field: string, why: string]

function refusedEdits(state: JourneyState, before: JourneyDocument, after: JourneyDocument): Refused[] {
  const changed = changedFields(before, after)
  switch (state) {
    case 'draft':
      return []
    case 'scheduled':
      return after.schedule?.start_at ? [] : [['schedule.start_at', 'is needed while the journey is scheduled']]
    case 'processing':
      return changed
        .filter((field) => field !== 'name' && field !== 'description')
        .map((field) => [field, 'cannot be changed while the journey is being activated'])
    case 'active':
      return [...refusedEntry(before, after), ...refusedSplits(before.nodes, after.nodes)]
    case 'archived':
      return changed.map((field) => [field, 'cannot be changed: the journey is archived'])
  }
}

export const changedFields = (before: JourneyDocument, after: JourneyDocument) =>
  (Object.keys(after) as (keyof JourneyDocument)[]).filter((field) => !isDeepStrictEqual(before[field], after[field]))

/** Who enters, and who counts as a member from before, was decided at the activation. */
function refusedEntry(
  { audience: old, schedule }: JourneyDocument,
  { audience: now, schedule: next }: JourneyDocument,
): Refused[] {
  const refused: Refused[] = []
  if ((schedule?.start_at ?? null) !== (next?.start_at ?? null))
    refused.push(['schedule.start_at', 'cannot be changed: the journey has started'])
  if (old.kind !== now.kind) return [...refused, ['audience.kind', 'cannot be changed while the journey is active']]
  if (old.kind !== 'segment' || now.kind !== 'segment') return refused
  if (now.included_segment_ids.length === 0)
    refused.push(['audience.included_segment_ids', 'must name at least one segment while the journey is active'])
  if (old.future_additions_only !== now.future_additions_only)
    refused.push(['audience.future_additions_only', 'cannot be changed while the journey is active'])
  for (const list of ['included_segment_ids', 'excluded_segment_ids'] as const)
    if (old.future_additions_only && !isDeepStrictEqual(old[list], now[list]))
      refused.push([`audience.${list}`, 'cannot be changed while the journey is active, with future_additions_only'])
  return refused
}

/** Settings of nodes that runs depend on. */
function refusedSplits(before: readonly JourneyNode[], after: readonly JourneyNode[]): Refused[] {
  const old = new Map(allNodes(before).map((node) => [node.id, node]))
  return allNodes(after).flatMap((node): Refused[] => {
    const was = old.get(node.id)
    if (!was || isDeepStrictEqual(definitionOf(was).frozen?.(was), definitionOf(node).frozen?.(node))) return []
    return [
      [`branches of the node ${node.id}`, 'cannot be added, removed or weighted anew while the journey is active'],
    ]
  })
}

export type Obstacle = { field: string; title: string }

/** What keeps a journey from being started, now or by its schedule. */
export function findObstacles(
  { audience, nodes, schedule }: JourneyDocument,
  wanted: 'now' | 'later',
  now: Date,
): Obstacle[] {
  const obstacles: Obstacle[] = []
  const say = (field: string, demand: string) => obstacles.push({ field, title: `${field} ${demand}` })
  if (nodes.length === 0) say('nodes', 'must not be empty when a journey is activated')
  if (audience.kind === 'segment' && audience.included_segment_ids.length === 0)
    say('audience.included_segment_ids', 'must name at least one segment when a journey is activated')
  const start = schedule?.start_at ? Date.parse(schedule.start_at) : undefined
  if (wanted === 'later' && (start === undefined || start <= now.getTime()))
    say('schedule.start_at', 'must be in the future for the state scheduled')
  if (wanted === 'now' && start !== undefined && start > now.getTime())
    say('schedule.start_at', 'is in the future: ask for the state scheduled, or clear it to start now')
  if (schedule?.stop_at && Date.parse(schedule.stop_at) <= now.getTime())
    say('schedule.stop_at', 'must be in the future')
  return obstacles
}

export const journeyNotReady = (obstacles: readonly Obstacle[]) =>
  new AppError(
    'unprocessable',
    ...obstacles.map(({ field, title }) => ({ code: 'journey-not-ready', title, meta: { field } })),
  )
