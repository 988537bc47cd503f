// What becomes of one run at one instant. The engine and the dry run both ask here, so they cannot disagree. Nothing is read or
// written: facts about the user that a rule depends on are asked for, and the run is interpreted again when they are known; what it
// does comes back as effects.

import { definitionOf } from '../nodes/kinds.ts'
import type { BranchId, NodeId } from '../nodes/node.ts'
import type { Facts, NodeDecision, NodeEffect, RunQuestion } from '../nodes/node-kind.ts'
import type { CompiledJourney } from './compile-journey.ts'
import { END, type Next, type Step } from './program.ts'
import type { Run, RunEvent } from './run.ts'

/** What holds for all runs of the app at this time. */
export type SendingConditions = {
  /** Nothing may be sent before, as far as is known: runs rest at their send nodes. */
  heldUntil: Date | undefined
}

/** An effect with what the run had come by: how many nodes and branches, and the events that met its conditions. */
export type RunEffect = NodeEffect & { trailLength: number; metEvents: readonly RunEvent[] }

export type RunProgress = {
  /** The nodes and branches that the run came by, in order. */
  trail: readonly (NodeId | BranchId)[]
  effects: readonly RunEffect[]
  /** Nodes that are done, and branches that were taken. */
  completed: readonly NodeId[]
  branches: readonly BranchId[]
  /** Events by which conditions were met. */
  metEvents: readonly RunEvent[]
}

export type RunAsks = { kind: 'asks'; questions: RunQuestion[] }
/** `dueAt`: when to look again; undefined while only an event can move the run. */
export type RunRests = RunProgress & {
  kind: 'rests'
  nodeId: NodeId
  arrivedAt: Date | undefined
  untilAt: Date | undefined
  dueAt: Date | undefined
  exitsLater: boolean
}
/** `nodeId`: where the run was when it left early. */
export type RunEnds = RunProgress & { kind: 'ends'; state: 'completed' | 'exited'; nodeId: NodeId | undefined }
export type RunOutcome = RunAsks | RunRests | RunEnds

type Visit = { journey: CompiledJourney; run: Run; now: Date; facts: Facts; conditions: SendingConditions }

/** Where a run is between two steps. */
type Position = {
  kind: 'at'
  next: Next
  arrivedAt: Date | undefined
  untilAt: Date | undefined
  /** Whether it is done with a node. */
  hasPassed: boolean
  progress: RunProgress
}

export function interpretRun(
  journey: CompiledJourney,
  run: Run,
  now: Date,
  facts: Facts,
  conditions: SendingConditions,
): RunOutcome {
  const visit = { journey, run, now, facts, conditions }
  let result: Position | RunOutcome = startOf(journey, run)
  while (result.kind === 'at') result = step(visit, result)
  return result
}

const NO_PROGRESS: RunProgress = { trail: [], effects: [], completed: [], branches: [], metEvents: [] }

const startOf = ({ program }: CompiledJourney, { nodeId, arrivedAt, untilAt, hasPassed }: Run): Position => ({
  kind: 'at',
  next: nodeId === undefined ? program.start : (program.stepOf.get(nodeId) ?? END),
  arrivedAt,
  untilAt,
  hasPassed,
  progress: NO_PROGRESS,
})

/** One node further, or the outcome. */
function step(visit: Visit, position: Position): Position | RunOutcome {
  const { journey, now } = visit
  const { progress } = position
  if (position.next === END) return { kind: 'ends', state: 'completed', nodeId: undefined, ...progress }
  const step = journey.program.steps[position.next] as Step
  const nodeId = step.node.id

  const exit = position.hasPassed ? exitBetweenNodes(visit, progress, nodeId) : undefined
  if (exit) return exit

  const decision = decide(visit, step, position)
  const sets = decision.kind === 'continues' && decision.effect?.kind === 'tag'
  if (hasTagged(progress) && (decision.kind === 'asks' || sets)) return pauseAt(nodeId, progress, now)

  switch (decision.kind) {
    case 'asks':
      return decision
    case 'rests':
      return restAt(visit, position, nodeId, decision)
    case 'exits':
      return { kind: 'ends', state: 'exited', nodeId, ...arriveAt(nodeId, position) }
    case 'continues':
      return leave(step, position, decision)
  }
}

const decide = (visit: Visit, { node }: Step, { arrivedAt, untilAt }: Position): NodeDecision =>
  definitionOf(node).decide(node, {
    journeyId: visit.journey.id,
    run: visit.run,
    now: visit.now,
    arrivedAt,
    untilAt,
    facts: visit.facts,
    sendsHeldUntil: visit.conditions.heldUntil,
  })

const hasTagged = ({ effects }: RunProgress) => effects.some(({ kind }) => kind === 'tag')

/** Facts do not include a tag that is set in this step. The run continues when the tag is written. */
const pauseAt = (nodeId: NodeId, progress: RunProgress, now: Date): RunRests => ({
  kind: 'rests',
  nodeId,
  arrivedAt: undefined,
  untilAt: undefined,
  dueAt: now,
  exitsLater: false,
  ...progress,
})

const ASK_FOR_EXIT: RunAsks = { kind: 'asks', questions: [{ key: 'exit', kind: 'exit' }] }

/** The rules of early exit are looked at before every node but the first. */
function exitBetweenNodes(
  { journey: { exit }, run, facts, now }: Visit,
  progress: RunProgress,
  nodeId: NodeId,
): RunOutcome | undefined {
  if (!exit) return undefined
  if (run.wantsExit) return exitAt(nodeId, progress, exit.tags)
  if (!exit.looksAtSegments) return undefined
  if (hasTagged(progress)) return pauseAt(nodeId, progress, now)
  const isMet = facts.get('exit')
  if (isMet === undefined) return ASK_FOR_EXIT
  return isMet ? exitAt(nodeId, progress, exit.tags) : undefined
}

/**
 * At the first node they are looked at when the run rests there: a user who met them on entering is done with that node before they
 * leave, and one who meets them while resting leaves at once.
 */
function restAt(
  { journey: { exit }, run, facts, now }: Visit,
  position: Position,
  nodeId: NodeId,
  rest: Extract<NodeDecision, { kind: 'rests' }>,
): RunOutcome {
  const { arrivedAt, hasPassed, progress } = position
  const resting: RunRests = {
    ...rest,
    nodeId,
    arrivedAt: arrivedAt ?? now,
    exitsLater: !hasPassed && run.exitsLater,
    ...arriveAt(nodeId, position),
  }
  if (!exit || hasPassed || resting.exitsLater) return resting
  if (run.wantsExit) return exitAt(nodeId, progress, exit.tags)
  if (!exit.looksAtSegments) return resting
  const isMet = facts.get('exit')
  if (isMet === undefined) return ASK_FOR_EXIT
  if (isMet && arrivedAt !== undefined) return exitAt(nodeId, progress, exit.tags)
  return { ...resting, exitsLater: isMet === true }
}

function exitAt(nodeId: NodeId, progress: RunProgress, assignments: Record<string, string>): RunEnds {
  const ending: RunEnds = { kind: 'ends', state: 'exited', nodeId, ...progress }
  if (Object.keys(assignments).length === 0) return ending
  return { ...ending, effects: [...progress.effects, effectOf({ kind: 'tag', assignments }, progress)] }
}

const arriveAt = (nodeId: NodeId, { arrivedAt, progress }: Position): RunProgress =>
  arrivedAt === undefined ? { ...progress, trail: [...progress.trail, nodeId] } : progress

const effectOf = (effect: NodeEffect, { trail, metEvents }: RunProgress): RunEffect => ({
  ...effect,
  trailLength: trail.length,
  metEvents,
})

/** Done with the node, on the way to the next one. */
function leave(
  { node, next, branches }: Step,
  position: Position,
  { branchId, effect, metEvent }: Extract<NodeDecision, { kind: 'continues' }>,
): Position {
  const arrived = arriveAt(node.id, position)
  const taken: RunProgress = {
    ...arrived,
    ...(branchId !== undefined && {
      trail: [...arrived.trail, branchId],
      branches: [...arrived.branches, branchId],
    }),
    ...(metEvent && { metEvents: [...arrived.metEvents, metEvent] }),
    completed: [...arrived.completed, node.id],
  }
  return {
    kind: 'at',
    next: branchId === undefined ? next : (branches.find(({ id }) => id === branchId)?.next ?? END),
    arrivedAt: undefined,
    untilAt: undefined,
    hasPassed: true,
    progress: effect ? { ...taken, effects: [...taken.effects, effectOf(effect, taken)] } : taken,
  }
}
