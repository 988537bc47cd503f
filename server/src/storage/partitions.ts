// Tables partitioned by month. Partitions are created and dropped at run time, because only the server knows the time:
// some are created ahead of need, and old ones are dropped whole. There is no default partition: adding a month beside
// one would require reading all of it.

import type { Db } from './db.ts'
import { Sql, sql } from './sql.ts'

type Month = { name: string; from: Date; until: Date }

/** Any unique constant works. */
const LOCK = 22_745_570

const monthOf = (table: string, year: number, month: number): Month => {
  const from = new Date(Date.UTC(year, month))
  const digits = from.toISOString().slice(0, 7).replace('-', '_')
  return { name: `${table}_${digits}`, from, until: new Date(Date.UTC(year, month + 1)) }
}

function monthsBetween(table: string, from: Date, until: Date): Month[] {
  const months: Month[] = []
  for (let n = from.getUTCMonth(); ; n++) {
    const month = monthOf(table, from.getUTCFullYear(), n)
    if (month.from > until) return months
    months.push(month)
  }
}

/** Servers that create or drop partitions at the same time take turns. */
const lockMonths = (db: Db) => db.query(sql`select pg_advisory_xact_lock(${LOCK})`)

async function findMonths(db: Db, table: string): Promise<Month[]> {
  const found = await db.query<{ name: string }>(sql`
    select c.relname as name
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = to_regclass(${table})
    order by c.relname`)
  return found.map(({ name }) => {
    const [year, month] = name.slice(table.length + 1).split('_')
    return monthOf(table, Number(year), Number(month) - 1)
  })
}

/**
 * Creates the missing partitions for any time from `from` to `until`. `table` is a name from our sources, never input.
 */
export async function addMonths(db: Db, table: string, from: Date, until: Date): Promise<void> {
  const wanted = monthsBetween(table, from, until)
  const findMissing = async (db: Db) => {
    const present = new Set((await findMonths(db, table)).map(({ name }) => name))
    return wanted.filter(({ name }) => !present.has(name))
  }
  if ((await findMissing(db)).length === 0) return
  await db.transaction(async (db) => {
    await lockMonths(db)
    for (const month of await findMissing(db)) await createMonth(db, table, month)
  })
}

/** Created separately and then attached: unlike "create table … partition of", that does not block writers. */
async function createMonth(db: Db, table: string, { name, from, until }: Month) {
  await db.query(new Sql(`create table ${name} (like ${table} including defaults including constraints)`, []))
  const [first, next] = [from.toISOString(), until.toISOString()]
  await db.query(
    new Sql(`alter table ${table} attach partition ${name} for values from ('${first}') to ('${next}')`, []),
  )
}

/**
 * Drops the partitions that ended at or before this time. That needs an exclusive lock on the table for a moment:
 * behind a long query it gives up after 2 s, so that writers do not queue up behind it, and is retried later.
 */
export async function dropMonths(db: Db, table: string, before: Date): Promise<void> {
  const old = (await findMonths(db, table)).filter(({ until }) => until <= before)
  for (const { name } of old)
    await db.transaction(async (db) => {
      await db.query(sql`set local lock_timeout = '2s'`)
      await lockMonths(db)
      await db.query(new Sql(`drop table if exists ${name}`, []))
    })
}

/**
 * PostgreSQL plans with outdated statistics for a partition that has grown by millions of rows since it was analyzed.
 */
export async function analyzeMonth(db: Db, table: string, at: Date): Promise<void> {
  await db.query(new Sql(`analyze ${monthOf(table, at.getUTCFullYear(), at.getUTCMonth()).name}`, []))
}
