// Shows where a user is in a journey, since when, and what would move them on.

import type { AppId } from '../../lib/ids.ts'
import { describeHold } from '../../reports/holds.ts'
import { readSending } from '../../sending/read.ts'
import type { JourneysContext } from '../context.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import type { Journey, JourneyId } from '../journey.ts'
import { allNodes, branchesOf, type JourneyNode, templateChannelOf, waitConditionsOf } from '../nodes/kinds.ts'
import { findRunsOf, type TracedRun } from '../runs/lifecycle-store.ts'
import { getJourney } from '../view.ts'
import { describeRun } from './describe-run.ts'
import { resolveUser, type UserQuery } from './resolve-user.ts'

export type TraceQuery = UserQuery & { limit: number; cursor?: string }

export async function traceUser(
  { db, now: clock }: JourneysContext,
  appId: AppId,
  id: JourneyId,
  { limit, cursor, ...whom }: TraceQuery,
) {
  const mark = cursor === undefined ? undefined : readCursor(cursor)
  const after = mark && { enteredAt: mark.at, id: mark.id }
  const journey = await getJourney({ db }, appId, id)
  const userId = await resolveUser(db, appId, whom)
  // One more than the page holds tells whether there is another page.
  const found = await findRunsOf(db, appId, id, userId, after, limit + 1)
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const now = clock()
  const { hold } = await readSending(db, appId, now)
  // In other holds runs advance, and their messages wait.
  const heldBy = hold?.reason === 'disabled' ? describeHold(hold) : undefined
  const known = placesOf(journey)
  return {
    journey_id: id,
    journey_state: journey.state,
    onesignal_id: userId,
    runs: page.map((run) => runObject(journey, run, known, heldBy, now)),
    ...(found.length > limit && last && { next_cursor: writeCursor({ at: last.enteredAt, id: last.id }) }),
  }
}

type Places = { nodes: ReadonlyMap<string, JourneyNode>; branches: ReadonlySet<string> }

function placesOf({ document }: Journey): Places {
  const nodes = allNodes(document.nodes)
  return {
    nodes: new Map(nodes.map((node) => [node.id, node])),
    branches: new Set(nodes.flatMap(branchesOf).map(({ id }) => id)),
  }
}

function runObject(journey: Journey, run: TracedRun, known: Places, heldBy: string | undefined, now: Date) {
  const isLive = run.state === 'waiting'
  const node = run.nodeId === null ? undefined : known.nodes.get(run.nodeId)
  const isHeld = isLive && node !== undefined && templateChannelOf(node.kind) !== undefined && heldBy !== undefined
  const waiting = isLive && node ? waitConditionsOf(node) : undefined
  return {
    run_id: run.id,
    state: run.state,
    entered_at: run.enteredAt.toISOString(),
    ended_at: run.endedAt?.toISOString() ?? null,
    entry_event: run.entryEvent?.name ?? null,
    node: run.nodeId === null ? null : { id: run.nodeId, kind: node?.kind ?? null },
    since: run.arrivedAt?.toISOString() ?? null,
    moves_at: run.untilAt?.toISOString() ?? null,
    waits_for: waiting?.branches.map(({ condition }) => condition.kind) ?? [],
    held: isHeld,
    held_reason: isHeld ? heldBy : null,
    may_enter_again_at: isLive ? null : (run.dueAt?.toISOString() ?? null),
    explanation: describeRun(journey.state, run, node, isHeld ? heldBy : undefined, now),
    path: run.path.map((id, n) => ({ ...placeObject(id, known), at: run.pathAt[n]?.toISOString() ?? null })),
  }
}

/** A node that was removed from the journey has no kind. */
const placeObject = (id: string, { nodes, branches }: Places) =>
  branches.has(id) ? { branch_id: id, kind: 'branch' } : { node_id: id, kind: nodes.get(id)?.kind ?? null }
