import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Sql } from '../src/storage/sql.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { readCatalogue } from './sql-rules/catalogue.ts'
import { renderSchema } from './sql-rules/render-schema.ts'

const SNAPSHOT = new URL('../migrations/schema.snapshot.sql', import.meta.url)

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

test('the migrations add up to the schema of the snapshot', async () => {
  const schema = renderSchema(await readCatalogue(database.db))
  if (process.env.UPDATE_SNAPSHOT) await writeFile(SNAPSHOT, schema)
  expect(schema, 'if it is meant to change: UPDATE_SNAPSHOT=1').toBe(await readFile(SNAPSHOT, 'utf8'))
})

test.each([
  'alter table users add column nickname text',
  'alter table users alter column language set not null',
  'alter table users alter column alias_count set default 1',
  'alter table users alter column language type varchar(8)',
  'alter table users drop constraint users_alias_limit',
  'alter table purchases drop constraint purchases_user_fk',
  'drop index subscriptions_by_user',
  'create index users_by_country on users (app_id, country) where country is not null',
  'alter table limit_counters set logged',
  'alter table limit_counters reset (fillfactor)',
  'create table another (app_id uuid not null)',
  'create view recent as select id from users',
  "create type mood as enum ('fine')",
  'create sequence numbers',
])('%s shows', async (change) => {
  const undo = new Error('undo')
  const changed = database.db.transaction(async (db) => {
    const before = renderSchema(await readCatalogue(db))
    await db.query(new Sql(change, []))
    expect(renderSchema(await readCatalogue(db))).not.toBe(before)
    throw undo
  })
  await expect(changed).rejects.toBe(undo)
})
