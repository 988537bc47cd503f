// Ends that come in the middle of a transaction, when one part of its work is done and the other is not: its connection is cut, or
// somebody else has a table that it is going to write to when its server is killed.

import { setTimeout as pause } from 'node:timers/promises'
import { type Sql, sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import type { Dice, Node, Rig } from './rig.ts'

const TABLES: Record<string, Sql> = {
  journey_runs: sql`lock table journey_runs in share row exclusive mode`,
  journey_counts: sql`lock table journey_counts in share row exclusive mode`,
  journey_calls: sql`lock table journey_calls in share row exclusive mode`,
  deliveries: sql`lock table deliveries in share row exclusive mode`,
  in_app_grants: sql`lock table in_app_grants in share row exclusive mode`,
  user_news: sql`lock table user_news in share row exclusive mode`,
  users: sql`lock table users in share row exclusive mode`,
  // With it everybody comes to the end of what they do, and no further.
  jobs: sql`lock table jobs in share row exclusive mode`,
}
export const EVERYWHERE = Object.keys(TABLES)
/** If nobody comes to write there meanwhile, they are killed doing something else. */
const COMES_MS = 3_000

/** For so long, whoever is moving runs loses the database in the middle of it, now and then. Answers how often that was so. */
export async function cutOff({ database: { db } }: Rig, dice: Dice, ms: number): Promise<number> {
  let cuts = 0
  for (const began = performance.now(); performance.now() - began < ms; ) {
    const cut = await db.query(sql`
      select pg_terminate_backend(a.pid) from pg_stat_activity a
      where a.datname = current_database() and a.state = 'idle in transaction' and a.pid <> pg_backend_pid()
        and a.query ~ 'journey_|in_app_grants|message_counts|user_news'`)
    cuts += cut.length
    await pause(cut.length > 0 ? dice.between(100, 300) : 2)
  }
  return cuts
}

/** All servers, or one while the others go on. */
export async function killMidway(
  rig: Rig,
  dice: Dice,
  table: string,
  nodes: readonly Node[] = rig.nodes,
): Promise<void> {
  const { db } = rig.database
  const isWaitedFor = async () =>
    (await db.query(sql`select from pg_locks where relation = ${table}::regclass and not granted limit 1`)).length > 0
  const kill = () => Promise.all(nodes.map(({ server }) => server.kill()))
  await db
    .transaction(async (held) => {
      await held.query(TABLES[table] as Sql)
      await until(isWaitedFor, COMES_MS).catch(() => {})
      await pause(dice.between(0, 300))
      await kill()
    })
    // Whoever has been writing there for seconds is in the middle of it anyway.
    .catch(kill)
  if (nodes.length === rig.nodes.length) await freeLeases(rig)
  await Promise.all(nodes.map((node) => node.start()))
}

/**
 * What nobody is left to hold is free at once: to wait for leases would take longer than all the rest. Kills that follow on each
 * other so fast are no sign that the work itself is what ends its servers, which is why it would be parked.
 */
async function freeLeases({ database: { db }, keys }: Rig): Promise<void> {
  await db.query(sql`
    update jobs set lease_until = 'epoch', crashes = 0 where app_id = ${keys.appId} and state = 'running'`)
  await db.query(sql`update leaders set lease_until = 'epoch' where lease_until is not null`)
}
