// SQL on runs for those who let users enter, wake runs and advance them.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../nodes/node.ts'
import { RUN_SHARDS, type Run, type RunEvent, type RunId, type RunShard, type RunState } from './run.ts'

/** The slot of a run that keeps its user from entering again. */
export const EXCLUSIVE_SLOT = '00000000-0000-0000-0000-000000000000'

/** Planned for their values: how many rows there are changes from nothing to millions. */
const UNPREPARED = { prepare: false } as const

/** `event`: the entry event. Such runs do not keep their user from entering again. */
export type NewRun = { id: RunId; journeyId: JourneyId; userId: UserId; event?: RunEvent }

/** Answers the inserted runs: users who may not enter (again) get none. They are due at once. */
export const insertRuns = (db: Db, appId: AppId, part: RunShard, list: readonly NewRun[], now: Date) =>
  db.query<{ id: RunId; journeyId: JourneyId; part: RunShard }>(sql`
    insert into journey_runs (app_id, id, journey_id, user_id, part, slot, due_at, entered_at, entry_event)
    select a.id, r.id, r.journey_id, r.user_id, ${part}::smallint, r.slot, ${now}::timestamptz, ${now}::timestamptz, r.event
    from apps a cross join jsonb_to_recordset(${rows(
      list.map(({ id, journeyId, userId, event }) => ({
        id,
        journey_id: journeyId,
        user_id: userId,
        slot: event ? id : EXCLUSIVE_SLOT,
        event,
      })),
    )}::jsonb) as r(id uuid, journey_id uuid, user_id uuid, slot uuid, event jsonb)
    where a.id = ${appId}
    order by r.journey_id, r.user_id
    on conflict (app_id, journey_id, user_id, slot) do nothing
    returning id, journey_id, part`)

/**
 * Inserts a run for each user of the array. `seed`: a fresh id from which the ids of the runs are derived. `state`: `barred` for users
 * who must never enter.
 */
export const insertRunsOf = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  userIds: string,
  { state, seed }: { state: 'waiting' | 'barred'; seed: string },
  now: Date,
) =>
  db.query<{ part: RunShard }>(
    sql`
    insert into journey_runs (app_id, id, journey_id, user_id, part, slot, state, due_at, entered_at)
    select a.id, md5(${seed}::text || u.user_id)::uuid, ${journeyId}::uuid, u.user_id, get_byte(uuid_send(u.user_id), 15) % ${RUN_SHARDS.length},
      ${EXCLUSIVE_SLOT}::uuid, ${state}, case when ${state} = 'waiting' then ${now}::timestamptz end, ${now}::timestamptz
    from apps a cross join unnest(${userIds}::uuid[]) u(user_id)
    where a.id = ${appId}
    on conflict (app_id, journey_id, user_id, slot) do nothing
    returning part`,
    UNPREPARED,
  )

/** `place`: the address of the row while it is locked. */
export type LockedRun = Run & { place: string; state: RunState; pathLength: number }

type Row = {
  place: string
  id: RunId
  userId: UserId
  state: RunState
  nodeId: NodeId | null
  arrivedAt: Date | null
  untilAt: Date | null
  enteredAt: Date
  entryEvent: RunEvent | null
  metEvents: RunEvent[]
  wantsExit: boolean
  exitsLater: boolean
  hasPassed: boolean
  pathLength: number
}

/** The ones due first. Skips rows that others have locked. */
export async function lockDue(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  part: RunShard,
  now: Date,
  limit: number,
): Promise<LockedRun[]> {
  const found = await db.query<Row>(
    sql`
    select r.ctid::text as place, r.id, r.user_id, r.state, r.node_id, r.arrived_at, r.until_at, r.entered_at, r.entry_event,
      r.met_events, r.wants_exit, r.exits_later, cardinality(r.path) as path_length, cardinality(r.path) > 1 or (cardinality(r.path) = 1 and r.arrived_at is null) as has_passed
    from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.part = ${part}::smallint and r.due_at <= ${now}
    order by r.due_at
    limit ${limit}
    for update skip locked`,
    UNPREPARED,
  )
  return found.map((row) => ({
    ...row,
    nodeId: row.nodeId ?? undefined,
    arrivedAt: row.arrivedAt ?? undefined,
    untilAt: row.untilAt ?? undefined,
    entryEvent: row.entryEvent ?? undefined,
  }))
}

/** The new state of runs. Many runs of a batch share one. */
export type RunChange = {
  state: RunState
  nodeId: NodeId | null
  arrivedAt: Date | null
  untilAt: Date | null
  dueAt: Date | null
  endedAt: Date | null
  exitsLater: boolean
  /** The nodes and branches that were passed. */
  trail: readonly string[]
}

/** Rows, the index of the change of each, and the events by which its conditions were met. */
export type RunUpdates = {
  places: readonly string[]
  changes: readonly number[]
  met: readonly (readonly RunEvent[])[]
}

export const updateRuns = (
  db: Db,
  appId: AppId,
  changes: readonly RunChange[],
  { places, changes: which, met }: RunUpdates,
  now: Date,
) =>
  db.query(
    sql`
    update journey_runs r
    set state = c.state, node_id = c."nodeId", arrived_at = c."arrivedAt", until_at = c."untilAt", due_at = c."dueAt",
      ended_at = c."endedAt", exits_later = c."exitsLater", path = r.path || c.trail,
      met_events = case when m.met is null then r.met_events else r.met_events || m.met::jsonb end,
      path_at = r.path_at || array_fill(${now}::timestamptz, array[cardinality(c.trail)])
    from unnest(${places}::tid[], ${which}::integer[],
      ${met.map((events) => (events.length > 0 ? JSON.stringify(events) : null))}::text[]) m(place, n, met)
    join jsonb_to_recordset(${rows(changes.map((it, n) => ({ ...it, n })))}::jsonb)
      as c(n integer, state text, "nodeId" uuid, "arrivedAt" timestamptz, "untilAt" timestamptz, "dueAt" timestamptz,
        "endedAt" timestamptz, "exitsLater" boolean, trail uuid[]) on c.n = m.n
    where r.app_id = ${appId} and r.ctid = m.place`,
    UNPREPARED,
  )

/** When the next run of a shard is due. */
export async function findNextDue(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  part: RunShard,
): Promise<Date | undefined> {
  const [found] = await db.query<{ dueAt: Date }>(
    sql`
    select r.due_at from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.part = ${part}::smallint and r.due_at is not null
    order by r.due_at
    limit 1`,
    UNPREPARED,
  )
  return found?.dueAt
}

/** Lets the users of these runs enter again. */
export const freeSlots = (db: Db, appId: AppId, places: readonly string[]) =>
  db.query(
    sql`
    update journey_runs r set slot = r.id, due_at = null
    where r.app_id = ${appId} and r.ctid = any(${places}::tid[])`,
    UNPREPARED,
  )

/** The name of the journey, the entry event, and the events by which conditions were met. */
export const findRunData = (db: Db, appId: AppId, ids: readonly RunId[]) =>
  db.query<{ id: RunId; name: string; entryEvent: RunEvent | null; metEvents: RunEvent[] }>(sql`
    select r.id, j.document ->> 'name' as name, r.entry_event, r.met_events
    from journey_runs r join journeys j on j.app_id = ${appId} and j.id = r.journey_id
    where r.app_id = ${appId} and r.id = any(${ids}::uuid[])`)

/** A run under way, for those who decide whether to wake it. */
export type LiveRun = {
  id: RunId
  journeyId: JourneyId
  userId: UserId
  part: RunShard
  nodeId: NodeId | null
  dueAt: Date | null
  enteredAt: Date
  entryEvent: RunEvent | null
  exitsLater: boolean
  hasPassed: boolean
}

const listener = sql`r.id, r.journey_id, r.user_id, r.part, r.node_id, r.due_at, r.entered_at, r.entry_event, r.exits_later,
  cardinality(r.path) > 1 or (cardinality(r.path) = 1 and r.arrived_at is null) as has_passed`

/**
 * The runs under way of users in journeys. Waits for workers that are advancing them and reads what they leave, so that a run that is
 * about to rest at a waiting node misses nothing.
 */
export const lockRunsOfUsers = (
  db: Db,
  appId: AppId,
  { journeyIds, userIds }: { journeyIds: readonly JourneyId[]; userIds: readonly UserId[] },
) =>
  db.query<LiveRun>(
    sql`
    select ${listener}
    from unnest(${journeyIds}::uuid[], ${userIds}::uuid[]) p(journey_id, user_id)
      join journey_runs r on r.app_id = ${appId} and r.journey_id = p.journey_id and r.user_id = p.user_id
    where r.state = 'waiting'
    order by r.id
    for update of r`,
    UNPREPARED,
  )

/** Runs that leave early: at once, or after the first node where the entry event itself makes them leave. */
export type EarlyExits = { atOnce: ReadonlySet<RunId>; later: ReadonlySet<RunId> }

/** Makes locked runs due now. */
export const wakeRuns = (db: Db, appId: AppId, ids: readonly RunId[], { atOnce, later }: EarlyExits, now: Date) =>
  db.query(
    sql`
    update journey_runs r
    set due_at = least(r.due_at, ${now}::timestamptz),
      wants_exit = r.wants_exit or r.id = any(${[...atOnce, ...later]}::uuid[]),
      exits_later = (r.exits_later or r.id = any(${[...later]}::uuid[])) and r.id <> all(${[...atOnce]}::uuid[])
    where r.app_id = ${appId} and r.id = any(${ids}::uuid[])`,
    UNPREPARED,
  )

export type RunCursor = { userId: UserId; slot: string }

/** The runs under way of a journey after a cursor, in the order of their users. */
export const findRunsAfter = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  after: RunCursor | undefined,
  limit: number,
) =>
  db.query<LiveRun & RunCursor>(
    sql`
    select ${listener}, r.slot
    from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.state = 'waiting'
      and (r.user_id, r.slot) > (${after?.userId ?? EXCLUSIVE_SLOT}::uuid, ${after?.slot ?? EXCLUSIVE_SLOT}::uuid)
    order by r.user_id, r.slot
    limit ${limit}`,
    UNPREPARED,
  )

/** The users who have no run that keeps them from entering. */
export const findOutside = (db: Db, appId: AppId, journeyId: JourneyId, userIds: readonly UserId[]) =>
  db.query<{ userId: UserId }>(
    sql`
    select m.user_id
    from unnest(${userIds}::uuid[]) m(user_id)
    where not exists (
      select 1 from journey_runs r
      where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.user_id = m.user_id and r.slot = ${EXCLUSIVE_SLOT}::uuid)`,
    UNPREPARED,
  )
