// The triggers of a journey: everything other than time that lets users enter, wakes runs or ends them.

import type { UserId } from '../../lib/ids.ts'
import type { FeedWatch } from '../../users/change-feed/feed.ts'
import { waitConditionsOf } from '../nodes/kinds.ts'
import type { BranchCondition, NodeId } from '../nodes/node.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { audienceDemand, exitDemands, type SegmentDemand } from '../runs/membership.ts'
import type { LiveRun } from '../runs/run-store.ts'

export type Triggers = {
  /** Users who meet this may enter. */
  audience: SegmentDemand | undefined
  /** The conditions that runs wait for, by node. */
  waits: ReadonlyMap<NodeId, readonly BranchCondition[]>
  /** The conditions among them that look at segments. */
  waitDemands: ReadonlyMap<NodeId, readonly SegmentDemand[]>
  exits: readonly { demand: SegmentDemand; exitsWhen: boolean }[]
  watches: readonly FeedWatch[]
}

const known = new WeakMap<CompiledJourney, Triggers>()

export function triggersOf(journey: CompiledJourney): Triggers {
  const ears = known.get(journey) ?? findEars(journey)
  known.set(journey, ears)
  return ears
}

function findEars(journey: CompiledJourney): Triggers {
  const { audience, exit, nodes } = journey
  const waits = new Map(
    nodes.flatMap((node): [NodeId, BranchCondition[]][] => {
      const waiting = waitConditionsOf(node)
      return waiting ? [[node.id, waiting.branches.map(({ condition }) => condition)]] : []
    }),
  )
  const waitDemands = new Map(
    [...waits].map(([id, conditions]): [NodeId, SegmentDemand[]] => [
      id,
      conditions.flatMap((it) =>
        it.kind === 'segment_membership'
          ? [{ included: it.included_segment_ids, excluded: it.excluded_segment_ids }]
          : [],
      ),
    ]),
  )
  const ears = {
    audience: audience.kind === 'segment' ? audienceDemand(audience) : undefined,
    waits,
    waitDemands,
    exits: exitDemands(journey),
  }
  const all = [...waits.values()].flat()
  const events = [
    ...(audience.kind === 'event_trigger' ? [audience.name] : []),
    ...(exit?.eventName === undefined ? [] : [exit.eventName]),
    ...all.flatMap((it) => (it.kind === 'event_trigger' ? [it.name] : [])),
  ]
  const watches: FeedWatch[] = [...new Set(events)].map((name) => ({ kind: 'event', name }))
  if (segmentDemandsOf(ears).length > 0) watches.push({ kind: 'change', name: '' })
  if (exit?.onSession) watches.push({ kind: 'session', name: '' })
  if (all.some(({ kind }) => kind === 'on_notification_action')) watches.push({ kind: 'action', name: '' })
  return { ...ears, watches }
}

/** Everything that depends on memberships. */
export const segmentDemandsOf = ({ audience, waitDemands, exits }: Omit<Triggers, 'watches'>): SegmentDemand[] => [
  ...(audience ? [audience] : []),
  ...exits.map(({ demand }) => demand),
  ...[...waitDemands.values()].flat(),
]

/** Whether memberships matter to runs under way. */
export const dependsOnSegments = ({ exits, waitDemands }: Triggers): boolean =>
  exits.length > 0 || [...waitDemands.values()].some((demands) => demands.length > 0)

export type MeetsDemand = (userId: UserId, demand: SegmentDemand) => boolean

const mustExit = ({ exits }: Triggers, holds: MeetsDemand, userId: UserId) =>
  exits.some(({ demand, exitsWhen }) => holds(userId, demand) === exitsWhen)

/** Whether the memberships of the user could move a run of theirs, at any node. */
export const mayMoveUser = (ears: Triggers, holds: MeetsDemand, userId: UserId): boolean =>
  mustExit(ears, holds, userId) || [...ears.waitDemands.values()].flat().some((demand) => holds(userId, demand))

/** Whether they move this run at its node. A run that must leave since it entered does its first node before. */
export const isRunMoved = (
  ears: Triggers,
  holds: MeetsDemand,
  { userId, nodeId, hasPassed, exitsLater }: LiveRun,
): boolean =>
  ((hasPassed || !exitsLater) && mustExit(ears, holds, userId)) ||
  (nodeId !== null && (ears.waitDemands.get(nodeId) ?? []).some((demand) => holds(userId, demand)))
