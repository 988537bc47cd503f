import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { CounterLog } from './local.ts'
import { LONGEST_WINDOW_MS } from './rules.ts'

// The counters of one app

/** The gate's own row carries no log; an hour is only when it may be swept up. */
const GATE_IDLE_MS = 3_600_000

/** Until the end of the transaction nobody else reads or writes this app's counters. */
export async function lockAppCounters(db: Db, appId: AppId, leaseMs: number): Promise<void> {
  const held = await db.query(sql`
    select counter
    from limit_counters
    where app_id = ${appId} and counter = ''
    for update`)
  if (held.length > 0) return
  // Made by several at once, it is locked by the conflict too.
  await db.query(sql`
    insert into limit_counters (app_id, counter, log, idle_at)
    select a.id, '', '{}', ${leaseMs + GATE_IDLE_MS}::double precision
    from apps a
    where a.id = ${appId}
    on conflict (app_id, counter) do update set idle_at = excluded.idle_at`)
}

export const findCounters = (db: Db, appId: AppId, counters: string[]) =>
  db.query<CounterLog>(sql`
    select counter, log
    from limit_counters
    where app_id = ${appId} and counter = any(${counters}::text[])`)

export async function saveCounters(db: Db, appId: AppId, counters: CounterLog[]): Promise<void> {
  const idle = counters.map(({ counter, log }) => ({
    counter,
    log,
    idle_at: (log.at(-2) ?? 0) + LONGEST_WINDOW_MS,
  }))
  await db.query(sql`
    insert into limit_counters (app_id, counter, log, idle_at)
    select a.id, r.counter, r.log, r.idle_at
    from apps a
    cross join jsonb_to_recordset(${rows(idle)}::jsonb)
      as r(counter text, log double precision[], idle_at double precision)
    where a.id = ${appId}
    on conflict (app_id, counter) do update set log = excluded.log, idle_at = excluded.idle_at`)
}

export const deleteIdleCounters = (db: Db, appId: AppId, leaseMs: number) =>
  db.query(sql`
    delete from limit_counters
    where app_id = ${appId} and idle_at <= ${leaseMs}`)

// Over all apps

/** Takes no locks. */
export const findAllAppsWithIdleCounters = (db: Db, leaseMs: number) =>
  db.query<{ appId: AppId }>(sql`
    select distinct app_id
    from limit_counters
    where idle_at <= ${leaseMs}`)

/** For the one node that is left; what comes back is nowhere else any more. */
export const takeCountersOfAllApps = (db: Db) =>
  db.query<CounterLog & { appId: AppId }>(sql`
    delete from limit_counters
    where counter <> ''
    returning app_id, counter, log`)

// The census of nodes

export type Counts = 'local' | 'shared'
export type ServerNode = { id: string; counts: Counts; leaseUntil: number }

/** Any constant of our own that no other lock has. */
const CENSUS_LOCK = 22_745_568

/** Until the end of the transaction nobody joins, leaves, or changes the way it counts. */
export const lockCensus = (db: Db) => db.query(sql`select pg_advisory_xact_lock(${CENSUS_LOCK})`)

export const findNodes = (db: Db) =>
  db.query<ServerNode>(sql`
    select id, counts, lease_until
    from server_nodes
    order by id`)

/** Waits for every decision that a member still has under way. */
export const lockNodes = (db: Db) =>
  db.query<ServerNode>(sql`
    select id, counts, lease_until
    from server_nodes
    order by id
    for update`)

/** How this node counts, and that it stays a member to the end of the transaction. Does not stand in the way of its renewal. */
export async function holdMembership(db: Db, id: string): Promise<Counts | undefined> {
  const [node] = await db.query<{ counts: Counts }>(sql`
    select counts
    from server_nodes
    where id = ${id}
    for key share`)
  return node?.counts
}

export const insertNode = (db: Db, node: ServerNode) =>
  db.query(sql`
    insert into server_nodes (id, counts, lease_until)
    values (${node.id}, ${node.counts}, ${node.leaseUntil})`)

export const updateNode = (db: Db, node: ServerNode) =>
  db.query<{ id: string }>(sql`
    update server_nodes
    set counts = ${node.counts}, lease_until = ${node.leaseUntil}
    where id = ${node.id}
    returning id`)

export const deleteNodes = (db: Db, ids: string[]) =>
  db.query(sql`
    delete from server_nodes
    where id = any(${ids}::uuid[])`)

export const CENSUS_CHANNEL = 'server_nodes'

/** Others look at the census every second anyway; this makes them look now. */
export const announceChange = (db: Db) => db.query(sql`select pg_notify(${CENSUS_CHANNEL}, '')`)
