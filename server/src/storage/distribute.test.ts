import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { createPool, type Pool } from './db.ts'
import { distribute, hasCitus, planDistribution } from './distribute.ts'
import { Sql, sql } from './sql.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

const execute = (text: string) => database.db.query(new Sql(text, []))

test('every table but that of the migrations has its place once', async () => {
  const plan = await planDistribution(database.db)
  const tables = await database.db.query<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = current_schema order by tablename`,
  )
  expect([...plan.map(({ name }) => name), 'schema_migrations'].toSorted()).toEqual(tables.map(({ name }) => name))
  expect(plan.filter(({ placement }) => placement === 'reference').map(({ name }) => name)).toEqual(
    expect.arrayContaining(['organizations', 'api_keys', 'server_nodes']),
  )
})

test('parents come before children, and apps before all that is put beside it', async () => {
  const names = (await planDistribution(database.db)).map(({ name }) => name)
  const links = await database.db.query<{ child: string; parent: string }>(sql`
    select conrelid::regclass::text as child, confrelid::regclass::text as parent
    from pg_constraint where contype = 'f' and connamespace = current_schema::regnamespace`)
  expect(links.length).toBeGreaterThan(3)
  for (const { child, parent } of links)
    expect(names.indexOf(parent), `${parent} < ${child}`).toBeLessThan(names.indexOf(child))
  const plan = await planDistribution(database.db)
  const apps = plan.findIndex(({ name }) => name === 'apps')
  expect(plan[apps]?.text).toBe("select create_distributed_table('apps', 'id')")
  for (const { placement } of plan.slice(0, apps)) expect(placement).toBe('reference')
})

test('tables of later migrations find their place by their keys', async () => {
  // In the order of their names the child would come first.
  await execute(
    'create table z_parent (app_id uuid not null, id uuid, constraint z_parent_pk primary key (app_id, id))',
  )
  await execute(`create table "A child" (app_id uuid not null, id uuid, at date,
    constraint child_pk primary key (app_id, id, at), constraint child_fk foreign key (app_id, id) references z_parent) partition by range (at)`)
  await execute('create table child_default partition of "A child" default')
  await execute('create table links (code text constraint links_pk primary key, app_id uuid not null)')
  try {
    const plan = await planDistribution(database.db)
    const texts = plan.map(({ text }) => text)
    expect(texts).toContain(`select create_reference_table('links')`)
    const child = texts.indexOf(`select create_distributed_table('"A child"', 'app_id', colocate_with => 'apps')`)
    const parent = texts.indexOf(`select create_distributed_table('z_parent', 'app_id', colocate_with => 'apps')`)
    expect(parent).toBeGreaterThan(-1)
    expect(child).toBeGreaterThan(parent)
    expect(texts.filter((text) => text.includes('child_default'))).toEqual([])
  } finally {
    await execute('drop table "A child", z_parent, links')
  }
})

test('what is in its place stays there: a second call, and one after a failure, does only what is missing', async () => {
  expect(await hasCitus(database.db)).toBe(false)
  const db = await withImitation()
  try {
    const plan = await planDistribution(db)
    // Half-way: one is done, one is merely known to Citus.
    await execute(`insert into imitation.pg_dist_partition values ('organizations', 'n', 't'), ('apps', 'n', 's')`)
    expect(await distribute(db)).toEqual(plan.filter(({ name }) => name !== 'organizations'))
    const called = await db.query<{ name: string }>(sql`select name from calls order by number`)
    expect(called.map(({ name }) => name)).toEqual(plan.slice(1).map(({ name }) => name))
    expect(await distribute(db)).toEqual([])
  } finally {
    await db.close()
  }
})

/** Functions and a table with the names of Citus' own, which only note that they were called. */
async function withImitation(): Promise<Pool> {
  await execute('create schema imitation')
  await execute(`create table imitation.pg_dist_partition (logicalrelid regclass, partmethod "char", repmodel "char")`)
  await execute('create table imitation.calls (number integer generated always as identity, name text)')
  await execute(`create function imitation.create_reference_table(name regclass) returns void language sql as $$
    insert into imitation.calls (name) values (name::text);
    insert into imitation.pg_dist_partition values (name, 'n', 't') $$`)
  await execute(`create function imitation.create_distributed_table(name regclass, by text, colocate_with text default 'default')
    returns void language sql as $$
    insert into imitation.calls (name) values (name::text);
    insert into imitation.pg_dist_partition values (name, 'h', 't') $$`)
  return createPool({
    connection: { ...database.connection, options: '-c search_path=public,imitation' },
    size: 1,
  })
}
