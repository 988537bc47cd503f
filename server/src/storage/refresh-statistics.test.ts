import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { refreshStatistics } from './refresh-statistics.ts'
import { sql } from './sql.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  // Without autovacuum: it may look at the table first, and what is counted here starts again.
  await database.db.query(
    sql`create table young (id integer constraint young_pk primary key) with (autovacuum_enabled = false)`,
  )
})
afterAll(() => database.close())

const grow = (from: number, to: number) =>
  database.db.query(sql`insert into young (id) select generate_series(${from}::integer, ${to}::integer)`)

/** What is inserted reaches the statistics a moment after its commit. */
async function untilSeen(rows: number) {
  const deadline = performance.now() + 10_000
  while (performance.now() < deadline) {
    const [seen] = await database.db.query<{ n: number }>(
      sql`select n_ins_since_vacuum as n from pg_stat_user_tables where relname = 'young'`,
    )
    if ((seen?.n ?? 0) >= rows) return
    await database.db.query(sql`select pg_stat_clear_snapshot()`)
  }
  throw new Error('the statistics did not come')
}

const estimate = async () => {
  const [row] = await database.db.query<{ n: number }>(sql`select reltuples as n from pg_class where relname = 'young'`)
  return row?.n
}

test('a table is analyzed when it holds four times as much, and left alone otherwise', async () => {
  expect(await estimate()).toBe(-1)
  await grow(1, 1_000)
  await untilSeen(1_000)
  expect(await refreshStatistics(database.db)).toBe(true)
  expect(await estimate()).toBe(1_000)
  await grow(1_001, 3_000)
  await untilSeen(3_000)
  expect(await refreshStatistics(database.db)).toBe(false)
  await grow(3_001, 5_000)
  await untilSeen(5_000)
  expect(await refreshStatistics(database.db)).toBe(true)
  expect(await estimate()).toBe(5_000)
})
