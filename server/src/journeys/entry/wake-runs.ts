// Wakes runs whose users changed. The rows are locked before anything is decided, so that a run that is being advanced is seen where it
// comes to rest.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { FeedEntry } from '../../users/change-feed/feed.ts'
import type { JourneyId } from '../journey.ts'
import { matchesEvent } from '../nodes/match-event.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import type { RunEvent, RunId } from '../runs/run.ts'
import { type EarlyExits, type LiveRun, lockRunsOfUsers, wakeRuns } from '../runs/run-store.ts'
import { isRunMoved, type MeetsDemand, mayMoveUser, type Triggers, triggersOf } from './triggers.ts'

type Journeys = ReadonlyMap<JourneyId, CompiledJourney>

/** The users whose runs are concerned, by journey. */
export type UsersByJourney = Map<JourneyId, Set<UserId>>

export function addUser(pairs: UsersByJourney, journeyId: JourneyId, userId: UserId): void {
  const users = pairs.get(journeyId) ?? new Set()
  pairs.set(journeyId, users.add(userId))
}

export async function lockRuns(db: Db, appId: AppId, pairs: UsersByJourney): Promise<LiveRun[]> {
  const list = [...pairs].flatMap(([journeyId, users]) => [...users].map((userId) => ({ journeyId, userId })))
  if (list.length === 0) return []
  const journeyIds = list.map(({ journeyId }) => journeyId)
  return lockRunsOfUsers(db, appId, { journeyIds, userIds: list.map(({ userId }) => userId) })
}

/** Answers the runs that were not due already. */
export async function wakeSleeping(
  db: Db,
  appId: AppId,
  runs: readonly LiveRun[],
  exits: EarlyExits,
  now: Date,
): Promise<LiveRun[]> {
  const isExit = (id: RunId) => exits.atOnce.has(id) || exits.later.has(id)
  const asleep = runs.filter(({ id, dueAt }) => isExit(id) || dueAt === null || dueAt > now)
  const ids = asleep.map(({ id }) => id)
  if (ids.length > 0) await wakeRuns(db, appId, ids, exits, now)
  return asleep
}

export const NO_EXITS: EarlyExits = { atOnce: new Set(), later: new Set() }

/** An event as runs store it. `at`: when it was recorded. */
export type UserEvent = { userId: UserId; at: Date; event: RunEvent }

export type UserChanges = {
  journeys: Journeys
  news: readonly FeedEntry[]
  events: readonly UserEvent[]
  /** Users whose data changed, and the demands they meet now. */
  changed: readonly UserId[]
  holds: MeetsDemand
  /** For runs that have just entered by an event: when it was recorded. */
  learnedAt: ReadonlyMap<RunId, Date>
}

export async function wakeAffectedRuns(db: Db, appId: AppId, happened: UserChanges, now: Date): Promise<LiveRun[]> {
  const { journeys, news, events, changed, holds } = happened
  const sessions = news.filter(({ kind }) => kind === 'session')
  const actions = news.filter(({ kind }) => kind === 'action')
  const pairs: UsersByJourney = new Map()
  for (const journey of journeys.values()) {
    const ears = triggersOf(journey)
    for (const it of events) if (isTriggeredByEvent(journey, ears, it)) addUser(pairs, journey.id, it.userId)
    if (journey.exit?.onSession) for (const { userId } of sessions) addUser(pairs, journey.id, userId)
    if (isTriggeredByActions(ears)) for (const { userId } of actions) addUser(pairs, journey.id, userId)
    for (const userId of changed) if (mayMoveUser(ears, holds, userId)) addUser(pairs, journey.id, userId)
  }
  const runs = await lockRuns(db, appId, pairs)

  const eventsOf = Map.groupBy(events, ({ userId }) => userId)
  const sessionsOf = Map.groupBy(sessions, ({ userId }) => userId)
  const acted = new Set(actions.map(({ runId }) => runId))
  const isChanged = new Set(changed)
  const exits = { atOnce: new Set<RunId>(), later: new Set<RunId>() }
  const awake: LiveRun[] = []
  for (const run of runs) {
    const journey = journeys.get(run.journeyId) as CompiledJourney
    const ears = triggersOf(journey)
    const own = eventsOf.get(run.userId) ?? []
    const since = sinceOf(journey, run, happened.learnedAt)
    const leaving = own.filter((it) => it.event.name === journey.exit?.eventName && isDuring(run, since, it))
    const mustExit =
      leaving.some(({ event }) => event.id !== run.entryEvent?.id) ||
      (journey.exit?.onSession === true && (sessionsOf.get(run.userId) ?? []).some(({ at }) => at >= since))
    if (mustExit) exits.atOnce.add(run.id)
    else if (leaving.length > 0) exits.later.add(run.id)
    if (
      mustExit ||
      leaving.length > 0 ||
      own.some((it) => waitsFor(ears, run, it)) ||
      (acted.has(run.id) && waitsForAction(ears, run)) ||
      (isChanged.has(run.userId) && isRunMoved(ears, holds, run))
    )
      awake.push(run)
  }
  return wakeSleeping(db, appId, awake, exits, now)
}

const isTriggeredByEvent = ({ exit }: CompiledJourney, { waits }: Triggers, { event }: UserEvent) =>
  exit?.eventName === event.name ||
  [...waits.values()].flat().some((it) => it.kind === 'event_trigger' && matchesEvent(it, event))

const isTriggeredByActions = ({ waits }: Triggers) => [...waits.values()].flat().some(isAction)

const isAction = ({ kind }: { kind: string }) => kind === 'on_notification_action'

const conditionsAt = ({ waits }: Triggers, { nodeId }: LiveRun) => (nodeId === null ? [] : (waits.get(nodeId) ?? []))

const waitsFor = (ears: Triggers, run: LiveRun, { event }: UserEvent) =>
  conditionsAt(ears, run).some((it) => it.kind === 'event_trigger' && matchesEvent(it, event))

const waitsForAction = (ears: Triggers, run: LiveRun) => conditionsAt(ears, run).some(isAction)

/** From when on events concern the run. */
function sinceOf(
  { startedAt }: CompiledJourney,
  { id, enteredAt }: LiveRun,
  learnedAt: ReadonlyMap<RunId, Date>,
): Date {
  const at = learnedAt.get(id) ?? enteredAt
  return startedAt && startedAt > at ? startedAt : at
}

/** The entry event counts: a user who enters and must leave by the same event does the first node and leaves. */
const isDuring = ({ entryEvent }: LiveRun, since: Date, { at, event }: UserEvent) =>
  entryEvent ? at > since || Date.parse(event.at) >= Date.parse(entryEvent.at) : at >= since
