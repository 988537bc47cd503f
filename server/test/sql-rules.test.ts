import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Db } from '../src/storage/db.ts'
import { camelCase, type Sql } from '../src/storage/sql.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { openSources, ROOT, type Sources } from './source.ts'
import { readCatalogue } from './sql-rules/catalogue.ts'
import { findErrorNames } from './sql-rules/error-names.ts'
import { GLOBAL_TABLES, SCHEMA_EXCEPTIONS, STATEMENT_EXCEPTIONS } from './sql-rules/exceptions.ts'
import { checkSchema, knownTables } from './sql-rules/schema-rules.ts'
import { checkStatement, type KnownTables, tablesOf } from './sql-rules/statement-rules.ts'
import { type Found, findStatements } from './sql-rules/statements.ts'

let database: TestDatabase
let sources: Sources
let found: Found
let known: KnownTables
beforeAll(async () => {
  database = await testDatabase()
  sources = openSources()
  found = findStatements(sources)
  known = knownTables(await readCatalogue(database.db), Object.keys(GLOBAL_TABLES))
})
afterAll(async () => {
  sources.close()
  await database.close()
})

type Broken = { at: string; rule: string; says: string; text: string }

function brokenRules(): Broken[] {
  const { statements, problems } = found
  return [
    ...problems.map(({ at, says }) => ({ at, rule: 'readable', says, text: '' })),
    ...statements
      .filter(({ isPlainText }) => isPlainText)
      .map(({ at, text }) => ({
        at,
        rule: 'tagged',
        says: 'a plain string does not keep values out of the text',
        text,
      })),
    ...statements.flatMap(({ at, text }) =>
      checkStatement(text, known).map((violation) => ({ at, text, ...violation })),
    ),
  ]
}

const isAt = (place: string, at: string) => at === place || at.startsWith(`${place} `)
const isExcepted = ({ at, rule }: Broken) =>
  STATEMENT_EXCEPTIONS.some((it) => isAt(it.at, at) && (it.rules as readonly string[]).includes(rule))

describe('the statements of the sources', () => {
  test('keep the rules, but for the exceptions', () => {
    const broken = brokenRules().filter((it) => !isExcepted(it))
    expect(broken.map(({ at, rule, says, text }) => `${at} breaks "${rule}": ${says}\n    ${oneLine(text)}`)).toEqual(
      [],
    )
    expect(found.statements.length).toBeGreaterThan(80)
  })

  test('need every exception that there is', () => {
    const broken = brokenRules()
    const unneeded = STATEMENT_EXCEPTIONS.flatMap(({ at, rules }) =>
      rules
        .filter((rule) => !broken.some((it) => isAt(at, it.at) && it.rule === rule))
        .map((rule) => `${at}: "${rule}"`),
    )
    expect(unneeded).toEqual([])
  })

  test('touch each global table from its own store alone', () => {
    const strangers = found.statements.flatMap(({ at, text }) =>
      tablesOf(text, known)
        .filter((table) => GLOBAL_TABLES[table] && !at.startsWith(`${GLOBAL_TABLES[table].store} `))
        .map((table) => `${at} touches ${table}`),
    )
    expect(strangers).toEqual([])
  })

  test('take each advisory lock by a number of its own', () => {
    const locks = found.statements
      .filter(({ text }) => /advisory/.test(text))
      // A second value says whose it is: an app's, say. Who shares a lock and who has it alone stand in one file.
      .map(({ at, valueTypes }) => ({ at: at.split(' ')[0] as string, number: valueTypes[0] ?? '' }))
      // A plain statement binds its values elsewhere; migrations have the only one.
      .filter(({ number }) => number !== '')
    expect(locks.length).toBeGreaterThan(0)
    for (const { at, number } of locks) {
      expect(number, `${at}: the number is a constant`).toMatch(/^\d+$/)
      expect(
        new Set(locks.filter((other) => other.number === number).map((other) => other.at)),
        `lock ${number}`,
      ).toEqual(new Set([at]))
    }
  })

  test('are never judged by the names of constraints or tables in errors', () => {
    expect(findErrorNames(sources)).toEqual([])
  })
})

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

describe('the rules for statements', () => {
  const rules = (statement: string) => [...new Set(checkStatement(statement, known).map(({ rule }) => rule))]

  test.each([
    'select id from users where app_id = $1 and id = $2',
    'select u.id from users u join subscriptions s on s.app_id = $1 and s.user_id = u.id where u.app_id = $2::uuid',
    'select 1 from apps where id = $1',
    'update users u set tags = r.tags from jsonb_to_recordset($1::jsonb) as r(id uuid, tags jsonb) where u.app_id = $2 and u.id = r.id',
    'delete from aliases d using jsonb_to_recordset($1::jsonb) as r(label text) where d.app_id = $2 and d.label = r.label',
    `insert into users (id, app_id, first_active, created_at, updated_at)
      select r.id, a.id, $1, $1, $1 from apps a cross join jsonb_to_recordset($2::jsonb) as r(id uuid) where a.id = $3`,
    'update jobs set fence = 1 where app_id = $1 and ctid = any(array(select ctid from jobs where app_id = $2 limit 9 for update skip locked))',
    `with known as materialized (select user_id from aliases where app_id = $1),
      fresh as (insert into aliases (app_id, label, value, user_id)
        select a.id, 'x', 'y', r.user_id from apps a cross join known r where a.id = $2)
      select r.* from known r`,
    'select count(*) from users where app_id = $1',
    'select pg_advisory_xact_lock($1)',
    'select pg_notify($1, id) from unnest($2::text[]) id',
    `select date_trunc('day', created_at, $1), extract(epoch from created_at) from users where app_id = $2`,
    `select extract(hour from created_at at time zone $1) from users where app_id = $2`,
    "set local lock_timeout = '5s'",
    'select id from organizations where id = $1',
    'with recursive n as (select 1 as i union all select n.i + 1 from n where n.i < $1) select n.i from n',
  ])('let through: %s', (statement) => {
    expect(checkStatement(statement, known)).toEqual([])
  })

  test.each([
    ['one app', 'select id from users where id = $1'],
    ['one app', 'select id from users where app_id = $1 or id = $2'],
    ['one app', 'select id from users where app_id::text = $1'],
    ['one app', 'select id from users where app_id = any($1)'],
    ['one app', 'select id from users where app_id <> $1'],
    ['one app', "select id from users where app_id = '00000000-0000-4000-8000-000000000000'"],
    ['one app', 'select 1 from apps where organization_id = $1'],
    ['one app', 'select u.id from users u join subscriptions s on s.user_id = u.id where u.app_id = $1'],
    ['one app', 'select u.id from users u, subscriptions s where app_id = $1'],
    [
      'one app',
      'select u.id from users u where u.app_id = $1 and exists (select 1 from aliases a where a.user_id = u.id)',
    ],
    ['one app', 'select (select count(*) from aliases a where a.user_id = u.id) from users u where u.app_id = $1'],
    ['one app', 'select t.id from (select id from users) t'],
    ['one app', 'with t as (select id from users) select t.id from t'],
    ['one app', 'select id from users where app_id = $1 union all select id from users'],
    ['one app', 'select id from users where app_id = $1 order by (select max(id::text) from subscriptions)'],
    ['one app', 'update users set tags = $1 where id = $2'],
    ['one app', 'delete from users where id = $1'],
    ['one app', 'update jobs set fence = 1 where app_id = $1 and ctid = any(array(select ctid from jobs for update))'],
    [
      'one app',
      'update jobs set fence = 1 where ctid = any(array(select ctid from jobs where app_id = $1 for update))',
    ],
    ['one app', 'select s.id from subscriptions s where s.app_id in (select app_id from users where id = $1)'],
    ['rows from apps', 'insert into users (app_id, id) values ($1, $2)'],
    ['rows from apps', 'insert into users (app_id, id) select $1::uuid, r.id from jsonb_to_recordset($2) r(id uuid)'],
    ['rows from apps', 'insert into users select a.id from apps a where a.id = $1'],
    [
      'rows from apps',
      'insert into users (app_id, id) select r.app_id, r.id from apps a cross join jsonb_to_recordset($1) r(app_id uuid, id uuid) where a.id = $2',
    ],
    ['one app', 'insert into users (app_id, id) select a.id, $1 from apps a'],
    ['app_id stays', 'update users set app_id = $1 where app_id = $2'],
    [
      'app_id stays',
      'insert into aliases (app_id, label) select a.id, $1 from apps a where a.id = $2 on conflict (app_id, label, value) do update set app_id = excluded.app_id',
    ],
    [
      'read before write',
      'update users set tags = $1 where app_id = $2 and id in (select u.id from users u where u.app_id = $3)',
    ],
    ['read before write', 'update users u set tags = o.tags from users o where u.app_id = $1 and o.app_id = $2'],
    [
      'read before write',
      'with gone as (delete from users where app_id = $1 returning id) select count(*) from users where app_id = $2',
    ],
    [
      'read before write',
      'with seen as (select id from users where app_id = $1) delete from users where app_id = $2 and id in (select seen.id from seen)',
    ],
    [
      'read before write',
      'with gone as (delete from users where app_id = $1 returning id), seen as materialized (select id from users where app_id = $2) select seen.id from seen',
    ],
    [
      'parents first',
      `with b as (insert into purchases (app_id, sku) select a.id, 'x' from apps a where a.id = $1),
      a as (insert into users (app_id, id) select a.id, $2 from apps a where a.id = $3) select 1`,
    ],
    ['time is a parameter', 'update users set updated_at = now() where app_id = $1'],
    ['time is a parameter', 'select current_timestamp'],
    ['time is a parameter', 'select localtime'],
    ['time is a parameter', 'select pg_catalog.clock_timestamp()'],
    ['time is a parameter', "select 'now'::timestamptz"],
    ['time is a parameter', 'select age(created_at) from users where app_id = $1'],
    ['chance is a parameter', 'select gen_random_uuid()'],
    ['chance is a parameter', 'select id from users where app_id = $1 order by random()'],
    ['time zone is a parameter', `select date_trunc('day', created_at) from users where app_id = $1`],
    ['time zone is a parameter', 'select extract(hour from created_at) from users where app_id = $1'],
    ['time zone is a parameter', 'select created_at::date from users where app_id = $1'],
    ['no session settings', "set local timezone = 'Asia/Tokyo'"],
    ['no session settings', "select set_config('carillon.app_id', $1, true)"],
    ['no session settings', "select id from users where app_id = $1 and id = current_setting('x')::uuid"],
    ['no merge', 'merge into users u using (values (1)) v on true when matched then delete'],
    [
      'no subquery on conflict',
      `insert into aliases (app_id, label) select a.id, $1 from apps a where a.id = $2
      on conflict (app_id, label, value) do update set user_id = (select 1)`,
    ],
    ['named columns', 'select * from users where app_id = $1'],
    ['named columns', 'select u.* from users u where u.app_id = $1'],
    ['named columns', 'delete from users where app_id = $1 returning *'],
    ['named columns', 'select count(*) from (select * from users where app_id = $1) t'],
    ['lock alone', 'select id from users where app_id = $1 and pg_try_advisory_xact_lock($2)'],
    ['lock alone', 'select pg_advisory_xact_lock(n) from unnest($1::bigint[]) n'],
    ['notify alone', 'select pg_notify($1, id::text) from users where app_id = $2'],
    [
      'notify alone',
      'with gone as (delete from users where app_id = $1 returning id) select pg_notify($2, gone.id::text) from gone',
    ],
    ['global alone', 'select u.id from users u cross join api_keys k where u.app_id = $1'],
    ['known table', 'select oid from pg_class'],
    ['known table', 'select id from nobody'],
    ['queries only', 'truncate users'],
    ['queries only', 'lock table users'],
    ['queries only', 'create table x (id uuid)'],
    ['no triggers', 'create trigger t before insert on users for each row execute function f()'],
  ] as const)('%s: %s', (rule, statement) => {
    expect(rules(statement)).toContain(rule)
  })
})

describe('finding statements', () => {
  const foundIn = async (source: string) => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-source-'))
    try {
      await copyFile(`${ROOT}server/src/storage/sql.ts`, join(folder, 'sql.ts'))
      await writeFile(join(folder, 'store.ts'), source)
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2024',
        strict: true,
        allowImportingTsExtensions: true,
        noEmit: true,
      }
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
      const fixture = openSources(join(folder, 'tsconfig.json'), `${folder}/`)
      try {
        const { statements, problems } = findStatements({
          ...fixture,
          files: fixture.files.filter(({ path }) => path === 'store.ts'),
        })
        return { texts: statements.map(({ text }) => oneLine(text)), statements, problems }
      } finally {
        fixture.close()
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  }
  const IMPORT = "import { Sql, sql } from './sql.ts'\n"

  test('values are numbered, and fragments spliced in wherever they come from', async () => {
    const { texts, problems } = await foundIn(`${IMPORT}
      const constant = sql\`id = \${1}\`
      const made = (id: string) => sql\`id = \${id}\`
      function chosen(flag: boolean) { if (flag) return sql\`a\`; return sql\`b\` }
      export const one = (app: string) => sql\`select 1 from t where app_id = \${app} and \${constant}\`
      export const two = (id: string) => sql\`select 1 from t where \${made(id)} and app_id = \${id}\`
      export const three = () => sql\`select \${chosen(true)} from t\`
      export const four = (flag: boolean) => sql\`select 1 from t \${flag ? sql\`where a = \${2}\` : sql\`\`}\`
      const within = (where: Sql) => sql\`select 1 from t where \${where}\`
      export const five = () => within(sql\`c = \${3}\`)`)
    expect(problems).toEqual([])
    expect(texts).toEqual([
      'select 1 from t where app_id = $1 and id = $2',
      'select 1 from t where id = $1 and app_id = $2',
      'select a from t',
      'select b from t',
      'select 1 from t where a = $1',
      'select 1 from t',
      'select 1 from t where c = $1',
    ])
  })

  test('statements in plain strings are found, prose is not', async () => {
    const { statements } = await foundIn(`
      export const a = 'delete from users'
      export const b = \`create database \${a}\`
      export const c = ['Create user', 'select a user', 'update the row with care', 'delete', 'begin', 'set']`)
    expect(statements.map(({ text, isPlainText }) => [text, isPlainText])).toEqual([
      ['delete from users', true],
      ['create database something', true],
    ])
  })

  test.each([
    [
      'a fragment out of an object',
      'export const a = (part: { where: Sql }) => sql`select 1 from t where #{part.where}`',
    ],
    ['a fragment that changes', 'let part = sql`a`; part = sql`b`; export const a = () => sql`select #{part} from t`'],
    ['a fragment nobody uses', 'export const a = () => sql`where id = 1`'],
    ['a parameter nobody hands in', 'export const a = (part: Sql) => sql`select #{part} from t`'],
    ['a statement made of strings', 'export const a = (text: string) => new Sql(text, [])'],
    ['a statement that is none', 'export const a = () => sql`selec id from t`'],
  ])('%s is a problem', async (_, source) => {
    expect((await foundIn(IMPORT + source.replaceAll('#{', '$' + '{'))).problems).not.toEqual([])
  })
})

describe('the schema', () => {
  const global = Object.keys(GLOBAL_TABLES)

  test('keeps the rules, but for the exceptions', async () => {
    const broken = checkSchema(await readCatalogue(database.db), global)
      .filter(({ name, rule }) => !SCHEMA_EXCEPTIONS.some((it) => it.name === name && it.rules.includes(rule)))
      .map(({ name, rule, says }) => `${name} breaks "${rule}": ${says}`)
    expect(broken).toEqual([])
  })

  test('needs every exception that there is', async () => {
    const catalogue = await readCatalogue(database.db)
    const broken = checkSchema(catalogue, global).map(({ name, rule }) => `${name}: ${rule}`)
    expect(SCHEMA_EXCEPTIONS.flatMap(({ name, rules }) => rules.map((rule) => `${name}: ${rule}`)).sort()).toEqual(
      broken.sort(),
    )
    expect(catalogue.tables.map(({ name }) => name)).toEqual(expect.arrayContaining(global))
  })

  const key = 'constraint x_pk primary key (app_id, id)'
  const ids = 'app_id uuid not null, id uuid not null'
  const parent = 'foreign key (app_id, id) references users (app_id, id)'
  test.each([
    ['app_id in every table', 'create table x (id uuid not null)'],
    ['app_id in every table', 'create table x (app_id uuid, id uuid)'],
    ['app_id in every table', 'create table x (app_id text not null)'],
    ['app_id leads every key', `create table x (${ids}, constraint x_pk primary key (id))`],
    ['app_id leads every key', `create table x (${ids}, constraint x_pk primary key (id, app_id))`],
    ['app_id leads every key', `create table x (${ids}, ${key}); create unique index x_once on x (lower(id::text))`],
    ['app_id leads every key', `create table x (${ids}, ${key}, constraint x_once unique (id))`],
    [
      'app_id in every foreign key',
      `create table x (${ids}, organization uuid, constraint x_fk foreign key (app_id) references limit_parents (id))`,
    ],
    [
      'app_id in every foreign key',
      'alter table api_keys add constraint api_keys_app_fk foreign key (app_id) references apps (id)',
    ],
    ['actions that can be distributed', `create table x (${ids}, constraint x_fk ${parent} on delete set null)`],
    ['actions that can be distributed', `create table x (${ids}, constraint x_fk ${parent} on update cascade)`],
    ['no triggers', `create table x (${ids}); create rule x_rule as on insert to x do nothing`],
    ['no triggers', `create table x (${ids}); alter table x enable row level security`],
    [
      'no triggers',
      `create function f() returns trigger language plpgsql as 'begin return new; end';
      create trigger x_trigger before insert on users for each row execute function f()`,
    ],
    ['names of our own', `create table x (${ids}, primary key (app_id, id))`],
    ['names of our own', `create table x (${ids}, n integer check (n > 0))`],
    ['names of our own', `create table x (${ids}, ${parent})`],
    ['names of our own', `create table x (${ids}); create index on x (app_id, id)`],
    ['ids are made by us', 'create table x (app_id uuid not null, n bigint generated always as identity)'],
    ['ids are made by us', 'create table x (app_id uuid not null, n bigserial)'],
    ['ids are uuids', 'create table x (app_id uuid not null, message_id text)'],
    ['timestamptz only', 'create table x (app_id uuid not null, at timestamp)'],
    ['timestamptz only', 'create table x (app_id uuid not null, at date)'],
    ['time is a parameter', 'create table x (app_id uuid not null, at timestamptz default now())'],
    ['time is a parameter', `create table x (app_id uuid not null, id uuid default gen_random_uuid())`],
    [
      'one level of partitions',
      `create table x (${ids}, at timestamptz) partition by range (at);
      create table y partition of x default partition by range (at)`,
    ],
    ['one level of partitions', 'create table x () inherits (users)'],
    [
      'no foreign keys on bulk',
      `alter table deliveries add constraint deliveries_fk foreign key (app_id, user_id) references users (app_id, id)`,
    ],
  ] as const)('%s: %s', async (rule, statements) => {
    const client = new pg.Client(database.connection)
    await client.connect()
    try {
      await client.query('begin')
      await client.query(
        'create table limit_parents (app_id uuid not null, id uuid constraint limit_parents_once unique)',
      )
      const before = checkSchema(await readCatalogue(asDb(client)), global).length
      await client.query(statements)
      const rules = checkSchema(await readCatalogue(asDb(client)), global)
      expect(rules.length).toBeGreaterThan(before)
      expect(rules.filter(({ name }) => !/^limit_parents/.test(name)).map((it) => it.rule)).toContain(rule)
    } finally {
      await client.end()
    }
  })
})

/** What is made inside a transaction can be looked at before it is thrown away. */
const asDb = (client: pg.Client): Db => ({
  async query<Row>(statement: Sql) {
    const { rows } = await client.query(statement.text, [...statement.values])
    return rows.map(
      (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [camelCase(name), value])) as Row,
    )
  },
  transaction: () => Promise.reject(new Error('there is one already')),
})
