// Finds the facts that decisions depend on, for a whole batch of runs: one statement for each kind of question.

import { findEventsSince, type MatchedEvent } from '../../events/since-store.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import { findRunActions } from '../../messages/feedback/run-action-store.ts'
import type { Db } from '../../storage/db.ts'
import { findPresence } from '../../users/presence-store.ts'
import { matchesEntry, matchesEvent } from '../nodes/match-event.ts'
import type { BranchCondition } from '../nodes/node.ts'
import type { Fact, Facts, RunQuestion } from '../nodes/node-kind.ts'
import { findSent } from '../sends/message-store.ts'
import type { CompiledJourney } from './compile-journey.ts'
import { exitDemands, findMembership, type SegmentDemand } from './membership.ts'
import type { Run, RunEvent } from './run.ts'

/** A run with the facts that are known so far. */
export type RunWithFacts<R extends Run = Run> = { run: R; known: Map<string, Fact> & Facts }
export type AskingRun = { traveller: RunWithFacts; questions: readonly RunQuestion[] }

type One<Q extends RunQuestion = RunQuestion> = { traveller: RunWithFacts; question: Q }

type Of<Kind extends BranchCondition['kind']> = One<
  Extract<RunQuestion, { kind: 'condition' }> & { condition: Extract<BranchCondition, { kind: Kind }> }
>

/** Adds the facts to each run. */
export async function answerQuestions(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  asked: readonly AskingRun[],
  now: Date,
) {
  const all = asked.flatMap(({ traveller, questions }) => questions.map((question): One => ({ traveller, question })))
  const ones = (test: (question: RunQuestion) => boolean) => all.filter(({ question }) => test(question))
  const conditions = <Kind extends BranchCondition['kind']>(kind: Kind) =>
    ones((it) => it.kind === 'condition' && it.condition.kind === kind) as Of<Kind>[]
  await answerPresence(
    db,
    appId,
    ones(({ kind }) => kind === 'zone' || kind === 'last active'),
  )
  await answerMembership(
    db,
    appId,
    journey,
    [...ones(({ kind }) => kind === 'exit'), ...conditions('segment_membership')],
    now,
  )
  await answerEvents(db, appId, journey, conditions('event_trigger'))
  await answerActions(db, appId, journey, conditions('on_notification_action'), now)
}

const note = ({ traveller, question }: One, value: Fact) => traveller.known.set(question.key, value)

const usersOf = (asked: readonly One[]): UserId[] => [...new Set(asked.map(({ traveller }) => traveller.run.userId))]

async function answerPresence(db: Db, appId: AppId, asked: readonly One[]) {
  if (asked.length === 0) return
  const found = new Map((await findPresence(db, appId, usersOf(asked))).map((it) => [it.userId, it]))
  for (const one of asked) {
    const presence = found.get(one.traveller.run.userId)
    note(one, (one.question.kind === 'zone' ? presence?.timezoneId : presence?.lastActive) ?? null)
  }
}

async function answerMembership(db: Db, appId: AppId, journey: CompiledJourney, asked: readonly One[], now: Date) {
  if (asked.length === 0) return
  const demands: SegmentDemand[] = []
  const places = new Map<string, number>()
  const placeOf = (demand: SegmentDemand) => {
    const name = JSON.stringify(demand)
    const place = places.get(name) ?? demands.push(demand) - 1
    places.set(name, place)
    return place
  }
  const rules = exitDemands(journey).map(({ demand, exitsWhen }) => ({ place: placeOf(demand), exitsWhen }))
  const demanded = asked.map((one) => ({ one, place: demandOf(one.question, placeOf) }))
  const found = await findMembership(db, appId, demands, usersOf(asked), now)
  for (const { one, place } of demanded) {
    const holds = found.get(one.traveller.run.userId) ?? []
    const isIn = (place: number) => holds[place] ?? false
    note(one, place === undefined ? rules.some(({ place, exitsWhen }) => isIn(place) === exitsWhen) : isIn(place))
  }
}

function demandOf(question: RunQuestion, placeOf: (demand: SegmentDemand) => number): number | undefined {
  if (question.kind !== 'condition' || question.condition.kind !== 'segment_membership') return undefined
  const { included_segment_ids: included, excluded_segment_ids: excluded } = question.condition
  return placeOf({ included, excluded })
}

/** Events count from the entry event, or from the time of the entry. */
function sinceOf({ startedAt }: CompiledJourney, { entryEvent, enteredAt }: Run): Date {
  if (entryEvent) return new Date(entryEvent.at)
  return startedAt && startedAt > enteredAt ? startedAt : enteredAt
}

const eventOf = (name: string, { id, at, properties }: MatchedEvent): RunEvent => ({
  id,
  name,
  at: at.toISOString(),
  properties,
})

/** The fact is the last event that meets the condition. */
async function answerEvents(db: Db, appId: AppId, journey: CompiledJourney, asked: readonly Of<'event_trigger'>[]) {
  if (asked.length === 0) return
  const wanted = asked.map(({ traveller: { run }, question: { condition, upTo } }, n) => ({
    n,
    userId: run.userId,
    name: condition.name,
    since: sinceOf(journey, run),
    upTo,
  }))
  const found = Map.groupBy(await findEventsSince(db, appId, wanted), ({ n }) => n)
  for (const [n, one] of asked.entries()) {
    const { condition } = one.question
    const { entryEvent } = one.traveller.run
    const events = (found.get(n) ?? []).filter(({ id }) => id !== entryEvent?.id)
    const met = events.filter(
      ({ properties }) =>
        matchesEvent(condition, { name: condition.name, properties }) &&
        matchesEntry(condition.entry_event_match_attributes, properties, entryEvent?.properties ?? {}),
    )
    const last = met.reduce<MatchedEvent | undefined>((last, it) => (last && last.at >= it.at ? last : it), undefined)
    note(one, last ? eventOf(condition.name, last) : false)
  }
}

async function answerActions(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  asked: readonly Of<'on_notification_action'>[],
  now: Date,
) {
  if (asked.length === 0) return
  const places = asked.map(({ traveller: { run }, question: { condition } }) => ({
    runId: run.id,
    nodeId: condition.sending_node_id,
  }))
  const sent = await findSent(db, appId, journey.id, places, now)
  const actions = sent.length > 0 ? await findRunActions(db, appId, sent) : []
  const nodeOf = new Map(sent.map(({ messageId, nodeId }) => [messageId, nodeId]))
  const done = new Set(
    actions.flatMap(({ runId, messageId, received, opened, clicked }) => {
      const at = `${runId} ${nodeOf.get(messageId)}`
      return [received && `${at} received`, opened && `${at} opened`, clicked && `${at} clicked`]
    }),
  )
  for (const one of asked) {
    const { sending_node_id: nodeId, action } = one.question.condition
    note(one, done.has(`${one.traveller.run.id} ${nodeId} ${action}`))
  }
}
