// SQL on journeys. Counts are in stats-store.ts, journey webhooks in webhooks/store.ts.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, rows, sql } from '../storage/sql.ts'
import type { ReferenceKind } from './document/reading.ts'
import type { Journey, JourneyDocument, JourneyId, JourneyState, JourneySummary } from './journey.ts'

const columns = sql`j.id, j.document, j.state, j.version, j.created_source, j.schedule_error, j.created_at, j.updated_at,
  j.started_at, j.archived_at`

export const insertJourney = (db: Db, appId: AppId, it: Journey) =>
  db.query(sql`
    insert into journeys (app_id, id, document, state, version, created_source, created_at, updated_at)
    select a.id, ${it.id}::uuid, ${JSON.stringify(it.document)}::jsonb, ${it.state}, ${it.version}::integer,
      ${it.createdSource}, ${it.createdAt}::timestamptz, ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}`)

export async function findJourney(db: Db, appId: AppId, id: JourneyId): Promise<Journey | undefined> {
  const [found] = await db.query<Journey>(sql`
    select ${columns} from journeys j where j.app_id = ${appId} and j.id = ${id}`)
  return found
}

/** The advisory lock's own namespace: any number that no other lock uses. */
const JOURNEY_LOCK = 22_745_572

// PostgreSQL grants shared row locks ahead of a waiting exclusive one: while some worker always advances runs, nobody could ever
// stop the journey. All of them take an advisory lock first, which is granted in order.
const queueToChange = (db: Db, id: JourneyId) =>
  db.query(sql`select pg_advisory_xact_lock(${JOURNEY_LOCK}, hashtext(${id}))`)
const queueToShare = (db: Db, id: JourneyId) =>
  db.query(sql`select pg_advisory_xact_lock_shared(${JOURNEY_LOCK}, hashtext(${id}))`)

/** Until the transaction ends nobody else changes or deletes the journey. */
export async function lockJourney(db: Db, appId: AppId, id: JourneyId): Promise<Journey | undefined> {
  await queueToChange(db, id)
  const [found] = await db.query<Journey>(sql`
    select ${columns} from journeys j where j.app_id = ${appId} and j.id = ${id} for update`)
  return found
}

/** Until the transaction ends the journey does not change. Those who advance its runs, or add or remove users, share the lock. */
export async function lockJourneyForShare(db: Db, appId: AppId, id: JourneyId): Promise<Journey | undefined> {
  await queueToShare(db, id)
  const [found] = await db.query<Journey>(sql`
    select ${columns} from journeys j where j.app_id = ${appId} and j.id = ${id} for share`)
  return found
}

/** Writes the whole row that was read under the lock. A change of state resets the progress of an activation. */
export const updateJourneyRow = (db: Db, appId: AppId, it: Journey) =>
  db.query(sql`
    update journeys
    set document = ${JSON.stringify(it.document)}, state = ${it.state}, version = ${it.version},
      schedule_error = ${it.scheduleError}, updated_at = ${it.updatedAt}, started_at = ${it.startedAt},
      archived_at = ${it.archivedAt}, is_cleared = is_cleared and state = ${it.state},
      entered_to = case when state = ${it.state} then entered_to end
    where app_id = ${appId} and id = ${it.id}`)

/** Answers the name of the deleted journey. Its versions and references are deleted with it. */
export async function deleteJourneyRow(db: Db, appId: AppId, id: JourneyId): Promise<string | undefined> {
  await queueToChange(db, id)
  const [gone] = await db.query<{ name: string }>(sql`
    delete from journeys where app_id = ${appId} and id = ${id} returning document ->> 'name' as name`)
  return gone?.name
}

export type JourneyCursor = { createdAt: Date; id: JourneyId }

/** Newest first, after the cursor. */
export const findJourneys = (db: Db, appId: AppId, after: JourneyCursor | undefined, limit: number) => {
  const from = after ? sql`and (j.created_at, j.id) < (${after.createdAt}::timestamptz, ${after.id}::uuid)` : sql``
  return db.query<JourneySummary>(sql`
    select j.id, j.document ->> 'name' as name, j.state, j.created_source, j.created_at, j.updated_at, j.started_at,
      j.archived_at
    from journeys j
    where j.app_id = ${appId} ${from}
    order by j.created_at desc, j.id desc
    limit ${limit}`)
}

export type JourneyVersion = {
  version: number
  document: JourneyDocument
  state: JourneyState
  fields: string[]
  changedAt: Date
  changedByKind: string
  changedById: string | null
}

export const insertVersion = (db: Db, appId: AppId, journeyId: JourneyId, it: JourneyVersion) =>
  db.query(sql`
    insert into journey_versions (app_id, journey_id, version, document, state, fields, changed_at, changed_by_kind,
      changed_by_id)
    select a.id, ${journeyId}::uuid, ${it.version}::integer, ${JSON.stringify(it.document)}::jsonb, ${it.state},
      ${it.fields}::text[], ${it.changedAt}::timestamptz, ${it.changedByKind}, ${it.changedById}::uuid
    from apps a
    where a.id = ${appId}`)

export const deleteVersionsUpTo = (db: Db, appId: AppId, journeyId: JourneyId, version: number) =>
  db.query(sql`
    delete from journey_versions where app_id = ${appId} and journey_id = ${journeyId} and version <= ${version}`)

export type VersionSummary = Omit<JourneyVersion, 'document' | 'state'>

/** Newest first, before a version. */
export const findVersions = (db: Db, appId: AppId, journeyId: JourneyId, before: number | undefined, limit: number) =>
  db.query<VersionSummary>(sql`
    select v.version, v.fields, v.changed_at, v.changed_by_kind, v.changed_by_id
    from journey_versions v
    where v.app_id = ${appId} and v.journey_id = ${journeyId}
      and (${before ?? null}::integer is null or v.version < ${before ?? null}::integer)
    order by v.version desc
    limit ${limit}`)

export async function findVersion(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  version: number,
): Promise<JourneyVersion | undefined> {
  const [found] = await db.query<JourneyVersion>(sql`
    select v.version, v.document, v.state, v.fields, v.changed_at, v.changed_by_kind, v.changed_by_id
    from journey_versions v
    where v.app_id = ${appId} and v.journey_id = ${journeyId} and v.version = ${version}`)
  return found
}

export const deleteReferences = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query(sql`delete from journey_uses where app_id = ${appId} and journey_id = ${journeyId}`)

/** Each reference once. */
export const insertReferences = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  uses: readonly { kind: ReferenceKind; id: string }[],
) =>
  db.query(sql`
    insert into journey_uses (app_id, kind, used_id, journey_id)
    select distinct a.id, r.kind, r.id, ${journeyId}::uuid
    from apps a cross join jsonb_to_recordset(${rows(uses.map(({ kind, id }) => ({ kind, id })))}::jsonb)
      as r(kind text, id uuid)
    where a.id = ${appId}`)

/** Whether a journey that is active, or being activated, refers to it. */
export async function isUsedByLiveJourney(db: Db, appId: AppId, kind: ReferenceKind, id: string): Promise<boolean> {
  const found = await db.query(sql`
    select 1
    from journey_uses u join journeys j on j.app_id = ${appId} and j.id = u.journey_id
    where u.app_id = ${appId} and u.kind = ${kind} and u.used_id = ${id} and j.state in ('processing', 'active')
    limit 1`)
  return found.length > 0
}

/** The active version of a journey, and when it was activated. */
export type ActiveVersion = { id: JourneyId; version: number; startedAt: Date | null }

const active = (appId: AppId, id: JourneyId | undefined) => sql`
  select j.id, j.version, j.started_at from journeys j
  where j.app_id = ${appId} and j.state = 'active' ${id === undefined ? emptySql : sql`and j.id = ${id}`}
  order by j.id`

export const findActive = (db: Db, appId: AppId, id: JourneyId) => db.query<ActiveVersion>(active(appId, id))

/** Until the transaction ends the journey stays active and unchanged. */
export async function lockActiveForShare(db: Db, appId: AppId, id: JourneyId): Promise<ActiveVersion[]> {
  await queueToShare(db, id)
  return db.query<ActiveVersion>(sql`${active(appId, id)} for share`)
}

/** The same for all journeys of the app. Only one job per app does so, so that it cannot starve those who wait for an exclusive lock. */
export const lockAllActiveForShare = (db: Db, appId: AppId) =>
  db.query<ActiveVersion>(sql`${active(appId, undefined)} for share`)

export const findJourneysById = (db: Db, appId: AppId, ids: readonly JourneyId[]) =>
  db.query<Journey>(sql`select ${columns} from journeys j where j.app_id = ${appId} and j.id = any(${ids}::uuid[])`)

/** Journeys that are active or being activated. */
export const findLiveJourneys = (db: Db, appId: AppId) =>
  db.query<Journey>(sql`
    select ${columns} from journeys j where j.app_id = ${appId} and j.state in ('processing', 'active')`)
