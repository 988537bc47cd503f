import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

// The counters of one app

/** `previous`: the stamp that the row must still have; null to overwrite any. */
export type WrittenCounter = { counter: string; previous: number | null; state: string; idleAt: number }

/** `state` is the row's current state, where that is not what was written. */
export type CounterRow = { counter: string; stamp: number; state: string | null }

/**
 * Writes each counter on condition that no other node has written it since. Returns the rows as they are now; those
 * with this stamp were written. One statement for all, so that no node ever waits for one that is gone. Counters must
 * be distinct and sorted, so that two nodes lock the rows they share in the same order.
 */
export const writeCounters = (db: Db, appId: AppId, stamp: number, counters: readonly WrittenCounter[]) =>
  db.query<CounterRow>(sql`
    insert into limit_counters as c (app_id, counter, stamp, previous, state, idle_at)
    select a.id, r.counter, ${stamp}::bigint, r.previous, r.state, r.idle_at
    from apps a
    cross join unnest(
      ${counters.map(({ counter }) => counter)}::text[],
      ${counters.map(({ previous }) => previous)}::bigint[],
      ${counters.map(({ state }) => state)}::text[],
      ${counters.map(({ idleAt }) => idleAt)}::double precision[]
    ) as r(counter, previous, state, idle_at)
    where a.id = ${appId}
    on conflict (app_id, counter) do update set
      stamp = case when c.stamp = coalesce(excluded.previous, c.stamp) then excluded.stamp else c.stamp end,
      state = case when c.stamp = coalesce(excluded.previous, c.stamp) then excluded.state else c.state end,
      idle_at = case when c.stamp = coalesce(excluded.previous, c.stamp) then excluded.idle_at else c.idle_at end
    returning counter, stamp, case when stamp <> ${stamp}::bigint then state end as state`)

/** Skips rows that a node is writing at this moment, because they are in use. */
export const deleteIdleCounters = (db: Db, appId: AppId, leaseMs: number) =>
  db.query(sql`
    delete from limit_counters
    where app_id = ${appId} and ctid = any(array(
      select ctid from limit_counters
      where app_id = ${appId} and idle_at <= ${leaseMs}
      for update skip locked))`)

// Over all apps

/** Takes no locks. */
export const findAllAppsWithIdleCounters = (db: Db, leaseMs: number) =>
  db.query<{ appId: AppId }>(sql`
    select distinct app_id
    from limit_counters
    where idle_at <= ${leaseMs}`)

// Registry of nodes

/** `gone`: the node has left or died, and until the time in its row something that it admitted may still count. */
export type CountingMode = 'local' | 'shared' | 'gone'
export type ServerNode = { id: string; counts: CountingMode; leaseUntil: number }

export const findNodes = (db: Db) =>
  db.query<ServerNode>(sql`
    select id, counts, lease_until
    from server_nodes
    order by id`)

/** False when the node has no row, or was marked dead. */
export async function renewNode(db: Db, { id, counts, leaseUntil }: ServerNode): Promise<boolean> {
  const renewed = await db.query(sql`
    update server_nodes
    set counts = ${counts}, lease_until = ${leaseUntil}
    where id = ${id} and counts <> 'gone'
    returning id`)
  return renewed.length > 0
}

export const saveNode = (db: Db, { id, counts, leaseUntil }: ServerNode) =>
  db.query(sql`
    insert into server_nodes (id, counts, lease_until)
    values (${id}, ${counts}, ${leaseUntil})
    on conflict (id) do update set counts = excluded.counts, lease_until = excluded.lease_until`)

/** Marks only nodes whose lease is still expired; a node that has renewed in the meantime is alive. */
export const markNodesGone = (db: Db, ids: string[], leaseMs: number, goneForMs: number) =>
  db.query<{ id: string }>(sql`
    update server_nodes
    set counts = 'gone', lease_until = lease_until + ${goneForMs}::double precision
    where id = any(${ids}::uuid[]) and counts <> 'gone' and lease_until <= ${leaseMs}
    returning id`)

export const deleteGoneNodes = (db: Db, leaseMs: number) =>
  db.query(sql`
    delete from server_nodes
    where counts = 'gone' and lease_until <= ${leaseMs}`)

export const NODES_CHANNEL = 'server_nodes'

/** Other nodes read the registry every second anyway; this makes them read it now. */
export const announceChange = (db: Db) => db.query(sql`select pg_notify(${NODES_CHANNEL}, '')`)
