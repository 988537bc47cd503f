import { hash } from 'node:crypto'
import pg from 'pg'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { emptyDatabase, type TestDatabase } from '../../test/database.ts'
import { type Migration, MigrationError, migrate, readMigrations } from './migrate.ts'
import { sql } from './sql.ts'

const AT = new Date('2030-01-01T09:00:00Z')
let database: TestDatabase

beforeEach(async () => {
  database = await emptyDatabase()
})
afterEach(() => database.close())

function aMigration(version: number, text: string): Migration {
  const name = `${String(version).padStart(4, '0')}_test.sql`
  return { version, name, text, checksum: hash('sha256', text, 'hex') }
}

const run = (...migrations: Migration[]) => migrate(database.connection, AT, migrations)
const tables = async () =>
  (
    await database.db.query<{ name: string }>(
      sql`select table_name::text as name from information_schema.tables where table_schema = 'public' order by 1`,
    )
  ).map((row) => row.name)

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error('it was accepted'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(MigrationError)
  return (error as Error).message
}

test('an empty database gets every migration, in order, and a second run does nothing', async () => {
  const names = (await readMigrations()).map((migration) => migration.name)
  expect(names).toEqual([...names].sort())
  expect(await migrate(database.connection, AT)).toEqual(names)
  expect(await tables()).toContain('apps')
  expect(await migrate(database.connection, AT)).toEqual([])
  const noted = await database.db.query(sql`select name, applied_at from schema_migrations order by version`)
  expect(noted).toEqual(names.map((name) => ({ name, appliedAt: AT })))
})

test('a later migration is applied on top of the earlier ones', async () => {
  const first = aMigration(1, 'create table a (n int)')
  const second = aMigration(2, 'alter table a add column m int')
  expect(await run(first)).toEqual([first.name])
  expect(await run(first, second)).toEqual([second.name])
})

test('of two nodes that migrate at once one does the work and the other waits for it', async () => {
  const slow = aMigration(1, 'create table a (n int); select pg_sleep(0.3)')
  const results = await Promise.all([run(slow), run(slow), run(slow)])
  expect(results.flat()).toEqual([slow.name])
})

test('a migration that fails leaves nothing of itself, and what came before it stays', async () => {
  const good = aMigration(1, 'create table a (n int)')
  const bad = aMigration(2, 'create table b (n int); insert into b values (1); select 1/0')
  expect(await refusal(run(good, bad))).toBe('migration 0002_test.sql failed and was rolled back: division by zero')
  expect(await tables()).toEqual(['a', 'schema_migrations'])
  const mended = aMigration(2, 'create table b (n int)')
  expect(await run(good, mended)).toEqual([mended.name])
})

test('a migration that cannot be noted as applied leaves nothing of itself either', async () => {
  const unnotable = aMigration(1, 'create table a (n int); alter table schema_migrations add check (version <> 1)')
  expect(await refusal(run(unnotable))).toMatch(/^migration 0001_test.sql failed and was rolled back: /)
  expect(await tables()).toEqual(['schema_migrations'])
})

test('a migration whose connection is killed in the middle leaves nothing of itself', async () => {
  const slow = aMigration(1, 'create table a (n int); select pg_sleep(30)')
  const failed = refusal(run(slow))
  await vi.waitFor(
    async () => {
      const ended = await database.db.query(sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'carillon migrate' and query like '%pg_sleep%'`)
      expect(ended).toHaveLength(1)
    },
    { timeout: 10_000 },
  )
  expect(await failed).toMatch(/^migration 0001_test.sql failed and was rolled back: /)
  expect(await tables()).toEqual(['schema_migrations'])
  expect(await run(aMigration(1, 'create table a (n int)'))).toHaveLength(1)
})

test('a database of a newer version is refused', async () => {
  const [first, second] = [aMigration(1, 'create table a (n int)'), aMigration(2, 'create table b (n int)')]
  await run(first, second)
  expect(await refusal(run(first))).toBe(
    'the database has migration 0002_test.sql, which this version of Carillon does not know; start the newer version',
  )
})

test('a migration that was edited after it was applied is refused', async () => {
  await run(aMigration(1, 'create table a (n int)'))
  expect(await refusal(run(aMigration(1, 'create table a (n bigint)'), aMigration(2, 'create table b (n int)')))).toBe(
    'migration 0001_test.sql was changed after it was applied',
  )
  expect(await tables()).toEqual(['a', 'schema_migrations'])
})

test('a table in use is waited for 5 s, then that is said', async () => {
  const first = aMigration(1, 'create table a (n int)')
  const second = aMigration(2, 'alter table a add column m int')
  await run(first)
  const reader = new pg.Client(database.connection)
  await reader.connect()
  try {
    await reader.query('begin')
    await reader.query('select n from a')
    expect(await refusal(run(first, second))).toBe(
      'migration 0002_test.sql failed and was rolled back: a table that it changes was in use for 5 s; try again when the database is quieter',
    )
    await reader.query('rollback')
    expect(await run(first, second)).toEqual([second.name])
  } finally {
    await reader.end()
  }
})
