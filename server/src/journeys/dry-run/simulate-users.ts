// A page of people walks through a journey on a virtual clock, which jumps from one moment at which something is due to the next.
// What becomes of each is for runs/interpret.ts to say, as it is for the engine. People know nothing of each other: those of a page
// go side by side, a virtual day at a time, only so that what must be asked about them is asked for many at once.

import { definitionOf, type JourneyNode, templateChannelOf, waitConditionsOf } from '../nodes/kinds.ts'
import type { BranchCondition, BranchId, NodeId } from '../nodes/node.ts'
import type { Fact, RunQuestion } from '../nodes/node-kind.ts'
import { pickNumber } from '../nodes/pick.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { interpretRun, type RunOutcome } from '../runs/interpret.ts'
import type { Run, RunEvent, RunId } from '../runs/run.ts'
import { secondsUntil } from './curve.ts'
import { DAY_MS } from './options.ts'
import { actionName, nameOf, type Rates } from './rates.ts'
import type { SegmentAnswers } from './segment-answers.ts'
import type { SimulatedUser } from './simulated-user.ts'
import type { Tally } from './tally.ts'

export type Simulation = {
  journey: CompiledJourney
  nodeOf: ReadonlyMap<NodeId, JourneyNode>
  startAt: Date
  days: number
  judge: SegmentAnswers
  rates: Rates
  tally: Tally
}

export type SimulatedRun = {
  person: SimulatedUser
  run: Run
  known: Map<string, Fact>
  dueMs: number
  /** Waits for being let in again. */
  isOver: boolean
  /** How often they were in before. */
  entries: number
  /** When the run will meet a rule of early exit by something that happens; undefined: never. */
  exitAtMs: number | undefined
  sentAtMs: Map<NodeId, number>
  /** When each event that is asked about will happen. */
  eventAtMs: Map<string, number | undefined>
}

/** Nothing is held back in a dry run. */
const WORLD = { heldUntil: undefined }
/** Whoever opens or clicks something does so within a day, at any time of it. */
const ACTS_WITHIN_MS = DAY_MS

export function startRun(trip: Simulation, person: SimulatedUser, enteredAt: Date, event?: RunEvent): SimulatedRun {
  const walker: SimulatedRun = {
    person,
    run: newRun(person, (event?.id ?? person.userId) as RunId, enteredAt, event),
    known: new Map(),
    dueMs: enteredAt.getTime(),
    isOver: false,
    entries: 1,
    exitAtMs: undefined,
    sentAtMs: new Map(),
    eventAtMs: new Map(),
  }
  trip.tally.users++
  begin(trip, walker)
  return walker
}

const newRun = ({ userId }: SimulatedUser, id: RunId, enteredAt: Date, entryEvent: RunEvent | undefined): Run => ({
  id,
  userId,
  nodeId: undefined,
  arrivedAt: undefined,
  untilAt: undefined,
  enteredAt,
  entryEvent,
  metEvents: [],
  wantsExit: false,
  exitsLater: false,
  hasPassed: false,
})

function begin(trip: Simulation, walker: SimulatedRun): void {
  trip.tally.started++
  walker.sentAtMs.clear()
  walker.eventAtMs.clear()
  walker.exitAtMs = exitMoment(trip, walker)
}

/** Until the journey's days are over. Afterwards each has ended, or is counted where it still is. */
export async function simulateRuns(trip: Simulation, walkers: readonly SimulatedRun[]): Promise<void> {
  const startMs = trip.startAt.getTime()
  const days: SimulatedRun[][] = Array.from({ length: trip.days }, () => [])
  const put = (walker: SimulatedRun) => days[Math.floor((walker.dueMs - startMs) / DAY_MS)]?.push(walker)
  for (const walker of walkers) put(walker)
  for (const [day, due] of days.entries()) {
    let going = due
    while (going.length > 0) {
      const asking: SimulatedRun[] = []
      for (const walker of going) {
        if (goOn(trip, walker, day)) put(walker)
        else asking.push(walker)
      }
      if (asking.length > 0) {
        const people = new Set(asking.map(({ person }) => person))
        await trip.judge.judge([...people], day)
      }
      going = asking
    }
    days[day] = []
  }
  for (const walker of walkers) if (!walker.isOver) countInside(trip, walker)
}

function countInside({ tally }: Simulation, { run: { nodeId, arrivedAt } }: SimulatedRun): void {
  tally.stillInside++
  if (nodeId && arrivedAt) tally.at(nodeId).waitingAtEnd++
}

/** As far as the day goes. False when segments must be asked about first. */
function goOn(trip: Simulation, walker: SimulatedRun, day: number): boolean {
  const endMs = trip.startAt.getTime() + (day + 1) * DAY_MS
  while (walker.dueMs < endMs) {
    if (walker.isOver) {
      if (!trip.judge.isKnown(walker.person, day)) return false
      if (!trip.judge.isInAudience(walker.person)) walker.dueMs = Number.POSITIVE_INFINITY
      else reenter(trip, walker)
      continue
    }
    const { run, known, dueMs } = walker
    run.wantsExit = walker.exitAtMs !== undefined && walker.exitAtMs <= dueMs
    if (run.wantsExit) run.exitsLater = walker.exitAtMs === run.enteredAt.getTime()
    const outcome = interpretRun(trip.journey, run, new Date(dueMs), known, WORLD)
    if (outcome.kind === 'asks') {
      if (!outcome.questions.every((question) => answer(trip, walker, question, day))) return false
    } else {
      known.clear()
      move(trip, walker, outcome)
    }
  }
  return true
}

function reenter(trip: Simulation, walker: SimulatedRun): void {
  const { person } = walker
  walker.run = newRun(person, `${person.userId} ${walker.entries++}` as RunId, new Date(walker.dueMs), undefined)
  walker.isOver = false
  begin(trip, walker)
}

/** False when it is not known yet. */
function answer(trip: Simulation, walker: SimulatedRun, question: RunQuestion, day: number): boolean {
  const { person, known, dueMs } = walker
  const { judge } = trip
  if (question.kind === 'zone') known.set(question.key, person.zone)
  else if (question.kind === 'last active') known.set(question.key, person.lastActive)
  else if (question.kind === 'condition' && question.condition.kind !== 'segment_membership') {
    const atMs = momentOf(trip, walker, question.condition)
    known.set(question.key, atMs !== undefined && atMs <= dueMs)
  } else {
    if (!judge.isKnown(person, day)) return false
    const isExit = question.kind === 'exit'
    known.set(question.key, isExit ? judge.mustExit(person) : judge.meets(person, question.key as BranchId))
  }
  return true
}

/** When what the condition waits for happens; undefined: never, as far as can be foreseen, or not yet begun. */
function momentOf(
  trip: Simulation,
  walker: SimulatedRun,
  condition: Exclude<BranchCondition, { kind: 'segment_membership' }>,
) {
  return condition.kind === 'event_trigger'
    ? eventMoment(trip, walker, nameOf(condition))
    : actionMoment(trip, walker, condition)
}

/** Counted from when they came in, as the journey counts. */
function eventMoment(
  { journey, rates }: Simulation,
  { run, eventAtMs }: SimulatedRun,
  name: string,
): number | undefined {
  if (eventAtMs.has(name)) return eventAtMs.get(name)
  const seconds = secondsUntil(rates.events.get(name)?.curve ?? [], pickNumber('event', name, journey.id, run.id))
  const atMs = seconds === undefined ? undefined : run.enteredAt.getTime() + Math.ceil(seconds * 1_000)
  eventAtMs.set(name, atMs)
  return atMs
}

function actionMoment(
  { journey, rates, nodeOf }: Simulation,
  { run, sentAtMs, person }: SimulatedRun,
  { sending_node_id: nodeId, action }: Extract<BranchCondition, { kind: 'on_notification_action' }>,
): number | undefined {
  const sentMs = sentAtMs.get(nodeId)
  const node = nodeOf.get(nodeId)
  const channel = node && templateChannelOf(node.kind)
  if (sentMs === undefined || channel === undefined) return undefined
  const share = rates.actions.get(actionName(channel, action))?.share ?? 0
  // The same number for all that may be done with a message: who clicks has received it.
  const drawn = pickNumber('action', nodeId, journey.id, run.id)
  if (drawn >= share || !person.channels.has(channel)) return undefined
  return action === 'received' ? sentMs : sentMs + Math.ceil((drawn / share) * ACTS_WITHIN_MS)
}

function exitMoment(trip: Simulation, walker: SimulatedRun): number | undefined {
  const { exit, id } = trip.journey
  const { run } = walker
  const moments: number[] = []
  if (exit?.eventName !== undefined && exit.eventName === run.entryEvent?.name) moments.push(run.enteredAt.getTime())
  else if (exit?.eventName !== undefined)
    moments.push(
      eventMoment(trip, walker, nameOf({ name: exit.eventName, attributes: [] })) ?? Number.POSITIVE_INFINITY,
    )
  if (exit?.onSession) {
    const seconds = secondsUntil(trip.rates.sessions ?? [], pickNumber('session', id, run.id))
    if (seconds !== undefined) moments.push(run.enteredAt.getTime() + Math.ceil(seconds * 1_000))
  }
  const first = Math.min(...moments)
  return Number.isFinite(first) ? first : undefined
}

function move(trip: Simulation, walker: SimulatedRun, outcome: Exclude<RunOutcome, { kind: 'asks' }>): void {
  const { run } = walker
  count(trip, walker, outcome)
  for (const effect of outcome.effects) if (effect.kind === 'tag') trip.judge.tag(walker.person, effect.assignments)
  if (outcome.kind === 'ends') {
    end(trip, walker)
    return
  }
  run.nodeId = outcome.nodeId
  run.arrivedAt = outcome.arrivedAt
  run.untilAt = outcome.untilAt
  run.exitsLater = outcome.exitsLater
  run.hasPassed ||= outcome.completed.length > 0
  walker.dueMs = nextMoment(trip, walker, outcome.dueAt?.getTime() ?? Number.POSITIVE_INFINITY)
}

function end({ journey: { reentrySeconds } }: Simulation, walker: SimulatedRun): void {
  walker.isOver = true
  walker.dueMs = reentrySeconds === undefined ? Number.POSITIVE_INFINITY : walker.dueMs + reentrySeconds * 1_000
}

/** What happens before the time is over wakes a run where it listens; what only time changes is looked at with each new day. */
function nextMoment(trip: Simulation, walker: SimulatedRun, dueMs: number): number {
  const { judge, nodeOf } = trip
  const { run, dueMs: nowMs, exitAtMs } = walker
  const node = run.nodeId && nodeOf.get(run.nodeId)
  const moments = [exitAtMs]
  if ((run.hasPassed || !run.exitsLater) && judge.isExitTimed) moments.push(nextDay(trip, nowMs))
  const waiting = node ? waitConditionsOf(node) : undefined
  if (waiting)
    for (const { id, condition } of waiting.branches)
      if (condition.kind !== 'segment_membership') moments.push(momentOf(trip, walker, condition))
      else if (judge.isBranchTimed(id)) moments.push(nextDay(trip, nowMs))
  return moments.reduce<number>(
    (first, atMs) => (atMs !== undefined && atMs > nowMs && atMs < first ? atMs : first),
    dueMs,
  )
}

function nextDay({ startAt }: Simulation, nowMs: number): number {
  const startMs = startAt.getTime()
  return startMs + (Math.floor((nowMs - startMs) / DAY_MS) + 1) * DAY_MS
}

function count(trip: Simulation, walker: SimulatedRun, outcome: Exclude<RunOutcome, { kind: 'asks' }>): void {
  const { tally, nodeOf } = trip
  const { run, dueMs, person, sentAtMs } = walker
  const ms = dueMs - trip.startAt.getTime()
  const isStill = outcome.kind === 'rests' && run.arrivedAt !== undefined && outcome.arrivedAt === run.arrivedAt
  if (run.nodeId && run.arrivedAt && !isStill) tally.at(run.nodeId).waiting.add(ms, -1)
  for (const id of outcome.trail) if (nodeOf.has(id as NodeId)) tally.at(id as NodeId).arrived++
  for (const id of outcome.branches) tally.take(id)
  for (const id of outcome.completed) {
    const node = nodeOf.get(id) as JourneyNode
    tally.at(id).completed++
    if (id === run.nodeId && run.arrivedAt) tally.at(id).moved.add(ms, 1)
    if (!definitionOf(node).channel) continue
    const channel = templateChannelOf(node.kind)
    tally.send(id, ms, channel === undefined || person.channels.has(channel))
    sentAtMs.set(id, dueMs)
  }
  if (outcome.kind === 'rests') {
    if (outcome.arrivedAt && !isStill) tally.at(outcome.nodeId).waiting.add(ms, 1)
  } else if (outcome.state === 'completed') tally.complete(dueMs - run.enteredAt.getTime())
  else {
    tally.exitedEarly++
    if (outcome.nodeId) tally.at(outcome.nodeId).exitedEarly++
  }
}
