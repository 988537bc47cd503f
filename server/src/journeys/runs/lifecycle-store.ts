// SQL on runs for activating, editing, clearing and tracing journeys and for retention. Advancing runs is in run-store.ts.

import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../nodes/node.ts'
import type { RunEvent, RunId, RunShard, RunState } from './run.ts'
import { EXCLUSIVE_SLOT, type RunCursor } from './run-store.ts'

/** Planned for their values: how many rows there are changes from nothing to millions. */
const UNPREPARED = { prepare: false } as const
/** An edit may relocate all runs of a journey while a client waits. */
const LONG = { prepare: false, timeoutMs: 60_000 } as const

// ---- activation

/** `isCleared`: no run of an earlier activation is left. `enteredTo`: the last subscription that was searched. */
export type ActivationProgress = { isCleared: boolean; enteredTo: SubscriptionId | null }

export async function findProgress(db: Db, appId: AppId, id: JourneyId): Promise<ActivationProgress | undefined> {
  const [found] = await db.query<ActivationProgress>(sql`
    select j.is_cleared, j.entered_to from journeys j where j.app_id = ${appId} and j.id = ${id}`)
  return found
}

export const writeProgress = (db: Db, appId: AppId, id: JourneyId, { isCleared, enteredTo }: ActivationProgress) =>
  db.query(sql`
    update journeys set is_cleared = ${isCleared}, entered_to = ${enteredTo}
    where app_id = ${appId} and id = ${id}`)

// ---- clearing

/** Deletes at most `limit` runs and answers their states. */
export const deleteRuns = (db: Db, appId: AppId, journeyId: JourneyId, limit: number) =>
  db.query<{ state: RunState }>(
    sql`
    delete from journey_runs
    where app_id = ${appId} and ctid = any(array(
      select r.ctid from journey_runs r where r.app_id = ${appId} and r.journey_id = ${journeyId}
      limit ${limit}
      for update))
    returning state`,
    UNPREPARED,
  )

const beyond = (after: RunCursor | undefined) =>
  after ? sql`and (r.user_id, r.slot) > (${after.userId}::uuid, ${after.slot}::uuid)` : sql``

/** The last of the next `size` runs; undefined when no more follow. */
export async function endOfRuns(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  after: RunCursor | undefined,
  size: number,
): Promise<RunCursor | undefined> {
  const [found] = await db.query<RunCursor>(
    sql`
    select r.user_id, r.slot from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} ${beyond(after)}
    order by r.user_id, r.slot
    offset ${size - 1} limit 1`,
    UNPREPARED,
  )
  return found
}

/** How many runs waited at a node. */
export type WaitingCount = { nodeId: NodeId; total: number }

/** Stops the runs under way in a range, where they are. Answers how many waited at each node. */
export const stopRuns = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  { after, upTo }: { after: RunCursor | undefined; upTo: RunCursor | undefined },
  now: Date,
) => {
  const end = upTo ? sql`and (r.user_id, r.slot) <= (${upTo.userId}::uuid, ${upTo.slot}::uuid)` : sql``
  return db.query<WaitingCount>(
    sql`
    with stopped as (
      update journey_runs r
      set state = 'stopped', ended_at = ${now}::timestamptz, due_at = null, until_at = null
      where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.state = 'waiting' ${beyond(after)} ${end}
      returning r.node_id, r.arrived_at
    )
    select s.node_id, count(*) as total from stopped s where s.arrived_at is not null group by s.node_id`,
    UNPREPARED,
  )
}

export async function findMessageIds(db: Db, appId: AppId, journeyId: JourneyId): Promise<string[]> {
  const found = await db.query<{ messageId: string }>(sql`
    select m.message_id from journey_messages m where m.app_id = ${appId} and m.journey_id = ${journeyId}
    order by m.message_id`)
  return found.map(({ messageId }) => messageId)
}

export const deleteMessages = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query(sql`delete from journey_messages where app_id = ${appId} and journey_id = ${journeyId}`)

/** Deletes at most `limit`; answers how many were deleted. */
export async function deletePasses(db: Db, appId: AppId, journeyId: JourneyId, limit: number): Promise<number> {
  const gone = await db.query(
    sql`
    delete from journey_passes
    where app_id = ${appId} and ctid = any(array(
      select p.ctid from journey_passes p where p.app_id = ${appId} and p.journey_id = ${journeyId}
      limit ${limit}
      for update))
    returning 1 as one`,
    UNPREPARED,
  )
  return gone.length
}

export const deletePassesOf = (db: Db, appId: AppId, userId: UserId) =>
  db.query(
    sql`
    delete from journey_passes p
    where p.app_id = ${appId} and p.user_id = ${userId} and p.journey_id = any(array(
      select j.id from journeys j where j.app_id = ${appId}))`,
    UNPREPARED,
  )

// ---- edits

/** A removed node, and the node where its runs continue; null at the end of the journey. */
export type RemovedNode = { nodeId: NodeId; next: NodeId | null }

const removedRows = (list: readonly RemovedNode[]) => rows(list.map(({ nodeId, next }) => ({ node: nodeId, next })))

/** Relocates runs that wait at removed nodes. Answers how many waited at each. */
export const moveWaiting = (db: Db, appId: AppId, journeyId: JourneyId, list: readonly RemovedNode[], now: Date) =>
  db.query<WaitingCount>(
    sql`
    with moved as (
      update journey_runs r
      set node_id = c.next, arrived_at = null, until_at = null, due_at = ${now}::timestamptz
      from jsonb_to_recordset(${removedRows(list)}::jsonb) as c(node uuid, next uuid)
      where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.state = 'waiting' and r.node_id = c.node
        and r.arrived_at is not null and c.next is not null
      returning c.node
    )
    select m.node as node_id, count(*) as total from moved m group by m.node`,
    LONG,
  )

/** The other runs at such nodes: those about to arrive, and those that complete because nothing follows. */
export const moveOthers = (db: Db, appId: AppId, journeyId: JourneyId, list: readonly RemovedNode[], now: Date) =>
  db.query(
    sql`
    update journey_runs r
    set node_id = coalesce(c.next, r.node_id), until_at = null, due_at = ${now}::timestamptz
    from jsonb_to_recordset(${removedRows(list)}::jsonb) as c(node uuid, next uuid)
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.state = 'waiting' and r.node_id = c.node`,
    LONG,
  )

/** Makes runs that rest at these nodes due now. A run without an end gets the new one, counted from its arrival. */
export const makeDue = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  list: readonly { nodeId: NodeId; seconds: number | null }[],
  now: Date,
) =>
  db.query(
    sql`
    update journey_runs r
    set until_at = coalesce(r.until_at, r.arrived_at + c.seconds * interval '1 second'), due_at = ${now}::timestamptz
    from jsonb_to_recordset(${rows(list)}::jsonb) as c("nodeId" uuid, seconds integer)
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.state = 'waiting' and r.node_id = c."nodeId"
      and r.arrived_at is not null`,
    LONG,
  )

// ---- one user

/** A run that ends before its time. */
export type EndedRun = { id: RunId; nodeId: NodeId | null; hasArrived: boolean }

/** Only runs under way. */
export const lockRunsOf = (db: Db, appId: AppId, journeyId: JourneyId, userId: UserId) =>
  db.query<EndedRun & { part: RunShard }>(sql`
    select r.id, r.part, r.node_id, r.arrived_at is not null as has_arrived from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.user_id = ${userId} and r.state = 'waiting'
    order by r.slot
    for update`)

/** `mayEnterAt`: when their user may enter again. */
export const exitRuns = (db: Db, appId: AppId, ids: readonly RunId[], mayEnterAt: Date | null, now: Date) =>
  db.query(sql`
    update journey_runs
    set state = 'exited', arrived_at = null, until_at = null, due_at = ${mayEnterAt}, ended_at = ${now}
    where app_id = ${appId} and id = any(${ids}::uuid[])`)

/** Journeys with runs of the user. Until the transaction ends nobody changes them. */
export async function lockJourneysOfForShare(db: Db, appId: AppId, userId: UserId): Promise<JourneyId[]> {
  const found = await db.query<{ id: JourneyId }>(
    sql`
    select j.id from journeys j
    where j.app_id = ${appId} and exists (
      select 1 from journey_runs r
      where r.app_id = ${appId} and r.journey_id = j.id and r.user_id = ${userId} offset 0)
    order by j.id
    for share`,
    UNPREPARED,
  )
  return found.map(({ id }) => id)
}

export const deleteRunsOf = (db: Db, appId: AppId, userId: UserId, journeyIds: readonly JourneyId[]) =>
  db.query<EndedRun & { journeyId: JourneyId; state: RunState }>(
    sql`
    delete from journey_runs r
    where r.app_id = ${appId} and r.journey_id = any(${journeyIds}::uuid[]) and r.user_id = ${userId}
    returning r.id, r.journey_id, r.state, r.node_id, r.arrived_at is not null as has_arrived`,
    UNPREPARED,
  )

export type TracedRun = {
  id: RunId
  state: RunState
  nodeId: NodeId | null
  arrivedAt: Date | null
  untilAt: Date | null
  dueAt: Date | null
  enteredAt: Date
  endedAt: Date | null
  entryEvent: RunEvent | null
  path: string[]
  pathAt: Date[]
}

/** Newest first, after the cursor. */
export const findRunsOf = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  userId: UserId,
  after: { enteredAt: Date; id: RunId } | undefined,
  limit: number,
) => {
  const from = after ? sql`and (r.entered_at, r.id) < (${after.enteredAt}::timestamptz, ${after.id}::uuid)` : sql``
  return db.query<TracedRun>(sql`
    select r.id, r.state, r.node_id, r.arrived_at, r.until_at, r.due_at, r.entered_at, r.ended_at, r.entry_event, r.path,
      r.path_at
    from journey_runs r
    where r.app_id = ${appId} and r.journey_id = ${journeyId} and r.user_id = ${userId} ${from}
    order by r.entered_at desc, r.id desc
    limit ${limit}`)
}

// ---- retention

export async function findArchivedBefore(db: Db, appId: AppId, before: Date): Promise<JourneyId[]> {
  const found = await db.query<{ id: JourneyId }>(sql`
    select j.id from journeys j where j.app_id = ${appId} and j.state = 'archived' and j.archived_at < ${before}`)
  return found.map(({ id }) => id)
}

/** The last of the next `size` runs of the app, in the order of their ids; undefined when no more follow. */
export async function endOfPage(db: Db, appId: AppId, after: RunId, size: number): Promise<RunId | undefined> {
  const [found] = await db.query<{ id: RunId }>(
    sql`
    select r.id from journey_runs r where r.app_id = ${appId} and r.id > ${after}::uuid
    order by r.id
    offset ${size - 1} limit 1`,
    UNPREPARED,
  )
  return found?.id
}

/** In a page of ids: runs that ended before and keep no user out, and all runs of these journeys. */
export const deleteExpiredRunsInPage = (
  db: Db,
  appId: AppId,
  { after, upTo }: { after: RunId; upTo: RunId | undefined },
  before: Date,
  archived: readonly JourneyId[],
) =>
  db.query(
    sql`
    delete from journey_runs r
    where r.app_id = ${appId} and r.id > ${after}::uuid ${upTo ? sql`and r.id <= ${upTo}::uuid` : sql``}
      and ((r.ended_at < ${before}::timestamptz and r.slot <> ${EXCLUSIVE_SLOT}::uuid) or r.journey_id = any(${archived}::uuid[]))`,
    UNPREPARED,
  )

/** The position of a row of passes among those of the app. */
export type PassCursor = { journeyId: JourneyId; userId: UserId; nodeId: NodeId }

const passPlace = ({ journeyId, userId, nodeId }: PassCursor) =>
  sql`(${journeyId}::uuid, ${userId}::uuid, ${nodeId}::uuid)`

/** The last of the next `size` rows; undefined when no more follow. */
export async function endOfPasses(
  db: Db,
  appId: AppId,
  after: PassCursor,
  size: number,
): Promise<PassCursor | undefined> {
  const [found] = await db.query<PassCursor>(
    sql`
    select p.journey_id, p.user_id, p.node_id from journey_passes p
    where p.app_id = ${appId} and (p.journey_id, p.user_id, p.node_id) > ${passPlace(after)}
    order by p.journey_id, p.user_id, p.node_id
    offset ${size - 1} limit 1`,
    UNPREPARED,
  )
  return found
}

/** In a range: passes that were last counted before that day. Skips rows that are being counted again. */
export const deleteExpiredPassesInPage = (
  db: Db,
  appId: AppId,
  { after, upTo }: { after: PassCursor; upTo: PassCursor | undefined },
  before: Date,
) => {
  const end = upTo ? sql`and (p.journey_id, p.user_id, p.node_id) <= ${passPlace(upTo)}` : sql``
  return db.query(
    sql`
    delete from journey_passes
    where app_id = ${appId} and ctid = any(array(
      select p.ctid from journey_passes p
      where p.app_id = ${appId} and (p.journey_id, p.user_id, p.node_id) > ${passPlace(after)} ${end}
        and p.day < ${before}::timestamptz
      for update skip locked))`,
    UNPREPARED,
  )
}

export const deleteExpiredMessages = (db: Db, appId: AppId, before: Date) =>
  db.query(sql`
    delete from journey_messages where app_id = ${appId} and day <= ${before}::timestamptz - interval '24 hours'`)
