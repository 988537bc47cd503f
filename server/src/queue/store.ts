import { type AppId, SYSTEM_APP_ID } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, type Sql, sql } from '../storage/sql.ts'
import type { ClaimedJob, JobId, JobLane, ParkedJob } from './job.ts'

export const JOBS_CHANNEL = 'carillon_jobs'

export type JobRow = { id: JobId; name: string; key: string; payload: unknown; runAt: Date; lane: JobLane }
export type JobHold = { appId: AppId; id: JobId; fence: number }

// Joining the app's own row sends the inserted rows to the app's database shard in one step, and a deleted app gets no
// jobs. The system has no such row; its few jobs take the slower path.
const owner = (appId: AppId) => (appId === SYSTEM_APP_ID ? sql`(values (${appId}::uuid)) a(id)` : sql`apps a`)

/**
 * Keys must be distinct and sorted, so that two callers lock the jobs they share in the same order. `wanted` is a
 * condition on the rows `r` and may leave out some of them.
 */
export const jobsInsert = (appId: AppId, jobs: readonly JobRow[], now: Date, wanted: Sql): Sql => sql`
    insert into jobs (app_id, id, name, key, payload, lane, run_at, enqueued_at)
    select a.id, r.id, r.name, r.key, r.payload, r.lane, r."runAt", ${now}::timestamptz
    from ${owner(appId)}
    cross join jsonb_to_recordset(${rows(jobs)}::jsonb)
      r(id uuid, name text, key text, payload jsonb, lane text, "runAt" timestamptz)
    where a.id = ${appId} and (${wanted})
    on conflict (app_id, name, key) do update set
      payload = excluded.payload,
      run_at = case when jobs.state = 'ready' and jobs.attempts = 0 then least(jobs.run_at, excluded.run_at) else jobs.run_at end,
      again_at = case when jobs.state = 'running' then least(jobs.again_at, excluded.run_at) else jobs.again_at end
    where jobs.state = 'running'
      or (jobs.state = 'ready' and (jobs.payload <> excluded.payload or jobs.run_at > excluded.run_at))
    returning id, state`

/** Returns how many of the jobs are running now; the workers that hold them run them once more. */
export async function insertJobs(db: Db, appId: AppId, jobs: readonly JobRow[], now: Date): Promise<number> {
  const found = await db.query<{ state: string }>(jobsInsert(appId, jobs, now, sql`true`))
  return found.filter(({ state }) => state === 'running').length
}

/** An app that has work to do, now or at the given time. */
export type WakeUp = { appId: AppId; at?: Date }

const spoken = ({ appId, at }: WakeUp) => (at ? `${appId} ${at.getTime()}` : appId)

export function parseWakeUp(payload: string): WakeUp {
  const [appId = '', ms] = payload.split(' ')
  return ms === undefined ? { appId } : { appId, at: new Date(Number(ms)) }
}

/** A statement of its own: combined with a table it could run on another database node, where nobody listens. */
export const notifyApps = (db: Db, wakeUps: readonly WakeUp[]) =>
  db.query(sql`select pg_notify(${JOBS_CHANNEL}, payload) from unnest(${wakeUps.map(spoken)}::text[]) payload`)

/** `crowded`: jobs of these names whose keys begin with these prefixes are not claimed. */
export type Claim = {
  lane: JobLane
  now: Date
  leaseUntil: Date
  limit: number
  maxCrashes: number
  crowded: readonly { name: string; prefix: string }[]
}

const isNotAmong = (crowded: Claim['crowded']) =>
  crowded.length === 0
    ? sql`true`
    : sql`not exists (
        select from unnest(${crowded.map(({ name }) => name)}::text[], ${crowded.map(({ prefix }) => prefix)}::text[])
          c(name, prefix)
        where c.name = jobs.name and starts_with(jobs.key, c.prefix))`

export const claimJobs = (db: Db, appId: AppId, { lane, now, leaseUntil, limit, maxCrashes, crowded }: Claim) =>
  db.query<ClaimedJob>(sql`
    update jobs set
      state = 'running',
      lease_until = ${leaseUntil},
      fence = fence + 1,
      again_at = case when again_at <= ${now} then null else again_at end
    where app_id = ${appId} and ctid = any(array(
      select ctid from jobs
      where app_id = ${appId} and state = 'ready' and lane = ${lane} and run_at <= ${now} and crashes <= ${maxCrashes}
        and ${isNotAmong(crowded)}
      order by run_at
      limit ${limit}
      for update skip locked))
    returning app_id, id, name, key, payload, lane, run_at, attempts, crashes, fence`)

const held = ({ appId, id, fence }: JobHold) =>
  sql`app_id = ${appId} and id = ${id} and fence = ${fence} and state = 'running'`

const changed = async (db: Db, statement: Sql) => (await db.query(statement)).length > 0

/** `for key share` blocks claims but not the heartbeat. */
export const isHeld = (db: Db, hold: JobHold) => changed(db, sql`select 1 from jobs where ${held(hold)} for key share`)

/**
 * Extends the leases that are still ours, and returns those jobs. Rows are locked in the order that all callers use,
 * because others enqueue jobs at the same time.
 */
export const renewLeases = (db: Db, appId: AppId, holds: readonly JobHold[], leaseUntil: Date) =>
  db.query<{ id: JobId }>(sql`
    with mine as materialized (
      select j.id from jobs j
      join jsonb_to_recordset(${rows(holds)}) r(id uuid, fence bigint) on r.id = j.id and r.fence = j.fence
      where j.app_id = ${appId} and j.state = 'running'
      order by j.name collate "C", j.key collate "C"
      for no key update of j)
    update jobs set lease_until = ${leaseUntil}
    from mine
    where jobs.app_id = ${appId} and jobs.id = mine.id
    returning jobs.id`)

export const deleteFinished = (db: Db, hold: JobHold) =>
  changed(db, sql`delete from jobs where ${held(hold)} and again_at is null returning id`)

export const rearmFinished = (db: Db, hold: JobHold) =>
  changed(
    db,
    sql`update jobs set state = 'ready', lease_until = null, run_at = again_at, again_at = null, attempts = 0, crashes = 0
      where ${held(hold)} and again_at is not null returning id`,
  )

export const retryFailed = (db: Db, hold: JobHold, runAt: Date, error: string) =>
  changed(
    db,
    sql`update jobs set state = 'ready', lease_until = null, run_at = ${runAt}, attempts = attempts + 1, last_error = ${error}
      where ${held(hold)} returning id`,
  )

export const parkFailed = (db: Db, hold: JobHold, parkedAt: Date, error: string) =>
  changed(
    db,
    sql`update jobs set state = 'parked', lease_until = null, parked_at = ${parkedAt}, attempts = attempts + 1, last_error = ${error}
      where ${held(hold)} returning id`,
  )

/** Returns the job as if it had never been claimed: neither an attempt nor a crash is counted. */
export const returnJob = (db: Db, hold: JobHold) =>
  changed(db, sql`update jobs set state = 'ready', lease_until = null where ${held(hold)} returning id`)

export const resetCrashes = (db: Db, hold: JobHold) =>
  db.query(sql`update jobs set crashes = 0 where ${held(hold)} and crashes > 0`)

export type Crashed = { id: JobId; name: string; crashes: number; state: 'ready' | 'parked' }

/** Jobs whose worker did not renew its lease are made ready again, or parked when that happened too often. */
export const recoverCrashed = (db: Db, appId: AppId, leaseNow: Date, now: Date, crashesToPark: number) =>
  db.query<Crashed>(sql`
    update jobs set
      crashes = crashes + 1,
      state = case when crashes + 1 >= ${crashesToPark} then 'parked' else 'ready' end,
      parked_at = case when crashes + 1 >= ${crashesToPark} then ${now}::timestamptz end,
      lease_until = null,
      last_error = 'the worker stopped answering'
    where app_id = ${appId} and ctid = any(array(
      select ctid from jobs
      where app_id = ${appId} and state = 'running' and lease_until <= ${leaseNow}
      order by lease_until
      limit 1000
      for update skip locked))
    returning id, name, crashes, state`)

export type DueApp = { appId: AppId; crashed: boolean; count: number; at: Date }

/** Reads the jobs of all apps that are due by `soon`, without locks. One node does this for all nodes. */
export const findDueAppsAcrossApps = (db: Db, soon: Date, leaseNow: Date) =>
  db.query<DueApp>(sql`
    select app_id, false as crashed, count(*) as count, min(run_at) as at
    from jobs where state = 'ready' and run_at <= ${soon} group by app_id
    union all
    select app_id, true as crashed, count(*) as count, min(lease_until) as at
    from jobs where state = 'running' and lease_until <= ${leaseNow} group by app_id`)

/** Includes apps whose job is running: it may have started before the caller's change. */
export const findAppsWithJobAcrossApps = (db: Db, name: string) =>
  db.query<{ appId: AppId }>(sql`
    select distinct app_id from jobs where name = ${name} and state <> 'parked' order by app_id`)

/** Also makes PostgreSQL discard the plans that it has cached for this table. */
export const analyzeJobs = (db: Db) => db.query(sql`analyze jobs`)

/** True for the one holder with a valid lease. */
export const takeLead = (db: Db, name: string, holder: string, leaseNow: Date, leaseUntil: Date) =>
  changed(
    db,
    sql`insert into leaders (app_id, name, holder, lease_until) values (${SYSTEM_APP_ID}, ${name}, ${holder}, ${leaseUntil})
      on conflict (app_id, name) do update set holder = excluded.holder, lease_until = excluded.lease_until
      where leaders.holder = excluded.holder or leaders.lease_until <= ${leaseNow}
      returning holder`,
  )

export const leaveLead = (db: Db, name: string, holder: string) =>
  db.query(sql`delete from leaders where app_id = ${SYSTEM_APP_ID} and name = ${name} and holder = ${holder}`)

/** Returns the slots that were not taken yet. A slot older than the last one taken is never taken. */
export const takeSlots = (db: Db, slots: readonly { name: string; slot: Date }[]) =>
  db.query<{ name: string }>(sql`
    insert into schedule_slots (app_id, name, slot)
    select ${SYSTEM_APP_ID}::uuid, r.name, r.slot from jsonb_to_recordset(${rows(slots)}) r(name text, slot timestamptz)
    on conflict (app_id, name) do update set slot = excluded.slot where schedule_slots.slot < excluded.slot
    returning name`)

export const findParked = (db: Db, appId: AppId, limit: number) =>
  db.query<ParkedJob>(sql`
    select app_id, id, name, key, payload, run_at, attempts, crashes, last_error, parked_at
    from jobs
    where app_id = ${appId} and state = 'parked'
    order by parked_at, id
    limit ${limit}`)

export const countParkedAcrossApps = (db: Db) =>
  db.query<{ appId: AppId; count: number }>(
    sql`select app_id, count(*) as count from jobs where state = 'parked' group by app_id order by app_id`,
  )

export const releaseParked = (db: Db, appId: AppId, ids: readonly JobId[], now: Date) =>
  db.query<{ id: JobId }>(sql`
    update jobs set state = 'ready', parked_at = null, run_at = ${now}, attempts = 0, crashes = 0
    where app_id = ${appId} and id = any(${ids}::uuid[]) and state = 'parked'
    returning id`)

export const deleteParked = (db: Db, appId: AppId, ids: readonly JobId[]) =>
  db.query<{ id: JobId }>(sql`
    delete from jobs where app_id = ${appId} and id = any(${ids}::uuid[]) and state = 'parked' returning id`)
