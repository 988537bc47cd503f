// What becomes of one run at one moment: the rules of all nodes, in plain TypeScript. The engine and the dry run both ask here, so
// they cannot disagree. Nothing is read or written: what a rule must know of the user is asked for, and the run is interpreted
// once more when that is known; what it does to the world comes back as effects.

import { timeZoneOf } from '../../lib/time-zone.ts'
import type { BranchCondition, BranchId, JourneyNode, NodeId, NodeOf } from '../nodes/node.ts'
import { pickBranch, pickNumber } from '../nodes/pick.ts'
import { findOpenTime, findSameTimeOfDay } from '../nodes/window-times.ts'
import type { CompiledJourney } from './compile-journey.ts'
import { END, type Next, type Step } from './program.ts'
import type { Run, RunEvent } from './run.ts'

/** What a rule must know. Each has a name by which its answer is found. */
export type RunQuestion =
  | { key: 'zone'; kind: 'zone' }
  | { key: 'last active'; kind: 'last active' }
  /** Whether one of the rules of early exit that look at segments is met. */
  | { key: 'exit'; kind: 'exit' }
  /** `upTo`: events count that happened by then. */
  | { key: string; kind: 'condition'; condition: BranchCondition; upTo?: Date }

/** The user's time zone or null, when they were last there, whether something holds, and the event that makes it so. */
export type Fact = string | Date | boolean | RunEvent | null
/** By the keys of questions. */
export type Facts = ReadonlyMap<string, Fact>

/** What holds for all runs of the app at the moment. */
export type SendingConditions = {
  /** Nothing may be sent before, as far as can be told: runs wait at their send nodes. */
  heldUntil: Date | undefined
}

export type RunEffect =
  /** `place`: how many nodes and branches of the trail led here. */
  | { kind: 'send'; node: NodeOf<'send_push' | 'send_email' | 'send_sms'>; place: number }
  | { kind: 'grant'; iamId: string; seconds: number | null }
  | { kind: 'call'; nodeId: NodeId; webhookId: string }
  /** `met`: the events of the way so far, of which values may speak. */
  | { kind: 'tag'; assignments: Record<string, string>; met: readonly RunEvent[] }

/** The nodes and branches that it came by, in order. */
export type Trail = (NodeId | BranchId)[]

type Way = {
  trail: Trail
  effects: RunEffect[]
  /** Nodes that it was done with, and branches that it took. */
  completed: NodeId[]
  branches: BranchId[]
  /** Events by which conditions were met. */
  met: RunEvent[]
}

export type RunOutcome =
  | { kind: 'asks'; questions: RunQuestion[] }
  /** `dueAt`: when to look again; undefined while only something that happens can move it. */
  | (Way & {
      kind: 'rests'
      nodeId: NodeId
      arrivedAt: Date | undefined
      untilAt: Date | undefined
      dueAt: Date | undefined
      exitsLater: boolean
    })
  /** `nodeId`: where it stood when it left early. */
  | (Way & { kind: 'ends'; state: 'completed' | 'exited'; nodeId: NodeId | undefined })

type NodeDecision =
  | { kind: 'asks'; questions: RunQuestion[] }
  | { kind: 'rests'; untilAt: Date | undefined; dueAt: Date | undefined }
  | { kind: 'goes'; next: Next; branchId?: BranchId; effect?: RunEffect; met?: RunEvent | undefined }
  | { kind: 'exits' }

export function interpretRun(
  journey: CompiledJourney,
  run: Run,
  now: Date,
  known: Facts,
  world: SendingConditions,
): RunOutcome {
  const { program } = journey
  const way: Way = { trail: [], effects: [], completed: [], branches: [], met: [] }
  let at: Next = run.nodeId === undefined ? program.start : (program.stepOf.get(run.nodeId) ?? END)
  let arrivedAt = run.arrivedAt
  let untilAt = run.untilAt
  let hasPassed = run.hasPassed
  let hasTagged = false
  for (;;) {
    if (at === END) return { kind: 'ends', state: 'completed', nodeId: undefined, ...way }
    const step = program.steps[at] as Step
    const { id: nodeId } = step.node
    // What looks at the user after a tag is to see it: the run goes on once it is written.
    const paused: RunOutcome = {
      ...{ kind: 'rests', nodeId, arrivedAt: undefined, untilAt: undefined, dueAt: now, exitsLater: false },
      ...way,
    }
    if (hasPassed && journey.exit) {
      if (run.wantsExit) return exited(journey, way, nodeId)
      if (journey.exit.looksAtSegments) {
        if (hasTagged) return paused
        const mustExit = known.get('exit')
        if (mustExit === undefined) return { kind: 'asks', questions: [{ key: 'exit', kind: 'exit' }] }
        if (mustExit) return exited(journey, way, nodeId)
      }
    }
    const decision = decide(journey, step, run, { now, arrivedAt, untilAt, known, world })
    // Whoever is to leave when they come in does the first node before; who rests there when it happens leaves at once.
    let exitsLater = !hasPassed && run.exitsLater
    if (!hasPassed && !exitsLater && journey.exit && decision.kind === 'rests') {
      if (run.wantsExit) return exited(journey, way, nodeId)
      const mustExit = journey.exit.looksAtSegments ? known.get('exit') : false
      if (mustExit === undefined) return { kind: 'asks', questions: [{ key: 'exit', kind: 'exit' }] }
      if (mustExit && arrivedAt !== undefined) return exited(journey, way, nodeId)
      exitsLater = mustExit === true
    }
    if (hasTagged && (decision.kind === 'asks' || step.node.kind === 'tag')) return paused
    if (decision.kind === 'asks') return decision
    if (arrivedAt === undefined) way.trail.push(nodeId)
    if (decision.kind === 'rests') return { ...decision, nodeId, arrivedAt: arrivedAt ?? now, exitsLater, ...way }
    if (decision.kind === 'exits') return { kind: 'ends', state: 'exited', nodeId, ...way }
    if (decision.branchId !== undefined) {
      way.trail.push(decision.branchId)
      way.branches.push(decision.branchId)
    }
    if (decision.met) way.met.push(decision.met)
    if (decision.effect?.kind === 'tag') way.effects.push({ ...decision.effect, met: [...way.met] })
    else if (decision.effect?.kind === 'send') way.effects.push({ ...decision.effect, place: way.trail.length })
    else if (decision.effect) way.effects.push(decision.effect)
    hasTagged ||= decision.effect?.kind === 'tag'
    way.completed.push(nodeId)
    hasPassed = true
    arrivedAt = undefined
    untilAt = undefined
    at = decision.next
  }
}

function exited({ exit }: CompiledJourney, way: Way, nodeId: NodeId): RunOutcome {
  const assignments = exit?.tags ?? {}
  const effects: RunEffect[] = Object.keys(assignments).length > 0 ? [{ kind: 'tag', assignments, met: way.met }] : []
  return { kind: 'ends', state: 'exited', nodeId, ...way, effects: [...way.effects, ...effects] }
}

type Moment = {
  now: Date
  arrivedAt: Date | undefined
  untilAt: Date | undefined
  known: Facts
  world: SendingConditions
}

function decide(journey: CompiledJourney, step: Step, run: Run, moment: Moment): NodeDecision {
  const { node, next } = step
  const { now, known, world } = moment
  switch (node.kind) {
    case 'wait':
      return restUntil(moment, next, () => secondsAfter(now, node.duration_seconds))
    case 'time_window':
      return atWindow(node, run, moment, next)
    case 'send_push':
    case 'send_email':
    case 'send_sms':
      if (world.heldUntil) return { kind: 'rests', untilAt: undefined, dueAt: world.heldUntil }
      return { kind: 'goes', next, effect: { kind: 'send', node, place: 0 } }
    case 'send_iam':
      return { kind: 'goes', next, effect: { kind: 'grant', iamId: node.iam_id, seconds: node.user_ttl_seconds } }
    case 'send_webhook':
      return { kind: 'goes', next, effect: { kind: 'call', nodeId: node.id, webhookId: node.webhook_id } }
    case 'tag':
      return { kind: 'goes', next, effect: { kind: 'tag', assignments: node.assignments, met: [] } }
    case 'split_range':
      return take(step, pickBranch(journey.id, node, run))
    case 'yes_no': {
      const [yes, no] = node.branches
      const question = asked(yes)
      const holds = known.get(question.key)
      if (holds === undefined) return { kind: 'asks', questions: [question] }
      return take(step, holds ? yes.id : no.id, holds)
    }
    case 'wait_until':
      return untilHeld(step, node, moment)
  }
}

const asked = ({ id, condition }: { id: BranchId; condition: BranchCondition }, upTo?: Date): RunQuestion => ({
  key: id,
  kind: 'condition',
  condition,
  ...(upTo && { upTo }),
})

const take = ({ branches }: Step, id: BranchId, by?: Fact): NodeDecision => ({
  kind: 'goes',
  next: branches.find((it) => it.id === id)?.next ?? END,
  branchId: id,
  met: isEvent(by) ? by : undefined,
})

const isEvent = (it: Fact | undefined): it is RunEvent => typeof it === 'object' && it !== null && !(it instanceof Date)

const secondsAfter = (at: Date, seconds: number) => new Date(at.getTime() + seconds * 1_000)

/** Rests from when it arrives until a moment that is fixed then. */
function restUntil({ now, arrivedAt, untilAt }: Moment, next: Next, fix: () => Date | undefined): NodeDecision {
  const until = arrivedAt === undefined ? fix() : untilAt
  return until && until <= now ? { kind: 'goes', next } : { kind: 'rests', untilAt: until, dueAt: until }
}

const PRESENCE: RunQuestion[] = [
  { key: 'last active', kind: 'last active' },
  { key: 'zone', kind: 'zone' },
]

function atWindow(node: NodeOf<'time_window'>, run: Run, moment: Moment, next: Next): NodeDecision {
  const { now, arrivedAt, known } = moment
  if (arrivedAt !== undefined) return restUntil(moment, next, () => undefined)
  if (node.relative_to === 'last_active_time') {
    const [lastActive, zone] = [known.get('last active'), known.get('zone')]
    if (lastActive === undefined || zone === undefined) return { kind: 'asks', questions: PRESENCE }
    return restUntil(moment, next, () =>
      lastActive instanceof Date ? findSameTimeOfDay(timeZoneOf(zone as string | null), lastActive, now) : now,
    )
  }
  const ownZone = node.use_user_time_zone ? known.get('zone') : null
  if (ownZone === undefined) return { kind: 'asks', questions: [{ key: 'zone', kind: 'zone' }] }
  const zone = timeZoneOf(ownZone as string | null, node.time_zone)
  return restUntil(moment, next, () => findOpenTime(node.windows, zone, now, pickNumber(run.id, node.id)))
}

/**
 * The first condition that holds decides. What is seen only after the time is over counts if it came in time; of segments and
 * messages nobody knows when that was, so that whoever is there by then is taken to have been.
 */
function untilHeld(step: Step, node: NodeOf<'wait_until'>, { now, arrivedAt, untilAt, known }: Moment): NodeDecision {
  const questions = node.branches.map((it) => asked(it, untilAt)).filter(({ key }) => !known.has(key))
  if (questions.length > 0) return { kind: 'asks', questions }
  const met = node.branches.find(({ id }) => known.get(id))
  if (met) return take(step, met.id, known.get(met.id))
  const { expiration } = node
  const until = arrivedAt === undefined ? expiration && secondsAfter(now, expiration.duration_seconds) : untilAt
  if (!until) return { kind: 'rests', untilAt: undefined, dueAt: undefined }
  if (until > now) return { kind: 'rests', untilAt: until, dueAt: until }
  return expiration?.exits ? { kind: 'exits' } : { kind: 'goes', next: step.next }
}

/** Whether something other than time can move a run that rests here. */
export const listens = (node: JourneyNode): node is NodeOf<'wait_until'> => node.kind === 'wait_until'
