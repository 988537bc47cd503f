import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { urlOf } from '../../test/command-line.ts'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { SYSTEM } from '../apps/app.ts'
import { createApp, createOrganization } from '../apps/create.ts'
import { withVapidPair } from '../apps/credentials/vapid.ts'
import { findApp } from '../apps/store.ts'
import { systemClock } from '../lib/clock.ts'
import { newId, SYSTEM_APP_ID } from '../lib/ids.ts'
import { secretBox, sha256 } from '../lib/secrets.ts'
import { sql } from '../storage/sql.ts'
import type { DoctorFinding } from './doctor.ts'
import { runCarillon } from './run.ts'

let database: TestDatabase
let dataDir: string
let env: Record<string, string>
beforeAll(async () => {
  database = await testDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'carillon-doctor-'))
  env = { DATABASE_URL: urlOf(database.connection), DATA_DIR: dataDir }
  // Whatever the PostgreSQL of the tests has, this is what is looked for.
  await set('synchronous_commit', 'off')
})
afterAll(async () => {
  await database.close()
  await rm(dataDir, { recursive: true })
})

const set = async (name: string, value: string) => {
  const [{ text = '' } = {}] = await database.db.query<{ text: string }>(
    sql`select format('alter database %I set %I = %L', current_database(), ${name}::text, ${value}::text) as text`,
  )
  await database.db.query({ text, values: [] })
}

async function doctor(settings: Record<string, string> = {}) {
  const { code, out } = await runCarillon(['doctor', '--json'], { ...env, ...settings })
  const findings: DoctorFinding[] = JSON.parse(out)
  return { code, findings, find: (check: string) => findings.find((finding) => finding.check === check) }
}

test('a database that may lose acknowledged writes is a problem, with what to do', async () => {
  const { code, find } = await doctor()
  expect(code).toBe(1)
  expect(find('durability')).toMatchObject({
    state: 'problem',
    says: expect.stringContaining('synchronous_commit'),
    advice: expect.stringContaining('synchronous_commit = on'),
  })
})

test('and only a warning for who said that it does not matter', async () => {
  const { code, find } = await doctor({ UNSAFE_DURABILITY: 'true' })
  expect(code).toBe(0)
  expect(find('durability')?.state).toBe('warning')
  expect(find('settings')?.state).toBe('warning')
})

test('every finding has its advice, unless all is well', async () => {
  const { findings } = await doctor()
  expect(findings.length).toBeGreaterThan(8)
  for (const { state, advice } of findings) expect(advice === undefined).toBe(state === 'ok')
  const { out } = await runCarillon(['doctor'], env)
  expect(out).toMatch(/^problem {2}durability +.+\n +Switch on in postgresql.conf/m)
})

test('settings that cannot be read are a finding too', async () => {
  const { code, findings } = await doctor({ PORT: 'x' })
  expect({ code, findings }).toMatchObject({ code: 1, findings: [{ check: 'settings', state: 'problem' }] })
})

test('a database that cannot be reached is a problem', async () => {
  const { code, find } = await doctor({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
  expect(code).toBe(1)
  expect(find('database')).toMatchObject({
    state: 'problem',
    says: 'cannot reach the database of DATABASE_URL at 127.0.0.1:1 (ECONNREFUSED)',
  })
})

test('files that others can read are pointed out', async () => {
  await writeFile(join(dataDir, 'secret-key'), 'x'.repeat(32))
  await chmod(join(dataDir, 'secret-key'), 0o644)
  await chmod(dataDir, 0o755)
  const open = await doctor()
  expect(open.find('data folder')?.state).toBe('warning')
  expect(open.find('secret key')).toMatchObject({ state: 'problem', advice: expect.stringContaining('chmod 600') })
  await chmod(join(dataDir, 'secret-key'), 0o600)
  await chmod(dataDir, 0o700)
  const closed = await doctor()
  expect([closed.find('data folder')?.state, closed.find('secret key')?.state]).toEqual(['ok', 'ok'])
})

test('parked jobs are a warning', async () => {
  expect((await doctor()).find('parked jobs')?.state).toBe('ok')
  const at = '2030-01-01T00:00:00Z'
  await database.db.query(sql`
    insert into jobs (app_id, id, name, key, state, run_at, parked_at, enqueued_at)
    values (${SYSTEM_APP_ID}, ${newId()}, 'test.fail', 'one', 'parked', ${at}, ${at}, ${at})`)
  expect((await doctor()).find('parked jobs')).toMatchObject({ state: 'warning', says: '1 job failed too often' })
})

test('several servers without a common secret key are a warning', async () => {
  const later = 4e12
  await database.db.query(sql`
    insert into server_nodes (id, counts, lease_until)
    values (${newId()}, 'shared', ${later}), (${newId()}, 'shared', ${later}), (${newId()}, 'shared', 0),
      (${newId()}, 'gone', ${later})`)
  expect((await doctor()).find('servers')).toMatchObject({
    state: 'warning',
    says: '2 answering requests, and SECRET_KEY is not given',
  })
  expect((await doctor({ SECRET_KEY: 'x'.repeat(32) })).find('servers')?.state).toBe('ok')
})

test('credentials that the secret key does not open are a problem', async () => {
  expect((await doctor()).find('credentials')).toMatchObject({ state: 'ok', says: 'none are kept yet' })
  const ctx = { db: database.db, clock: systemClock() }
  const id = await createApp(ctx, await createOrganization(ctx, { name: 'Org' }, SYSTEM), { name: 'Shop' }, SYSTEM)
  const found = await findApp(database.db, id)
  if (!found) throw new Error('no app')
  await withVapidPair({ db: database.db, secrets: secretBox('the right secret key') }, found)
  const state = async (settings: Record<string, string>) => (await doctor(settings)).find('credentials')?.state
  expect(await state({ SECRET_KEY: 'the right secret key' })).toBe('ok')
  expect(await state({ SECRET_KEY: 'a newer secret key,the right secret key' })).toBe('ok')
  expect(await state({ SECRET_KEY: 'another secret key' })).toBe('problem')
  expect(await state({ DATA_DIR: join(dataDir, 'nothing here') })).toBe('problem')
})

test('apps with addresses that let SDKs in without proof are pointed out', async () => {
  const ctx = { db: database.db, clock: systemClock() }
  const organizationId = await createOrganization(ctx, { name: 'Open' }, SYSTEM)
  const [open, shut] = [
    await createApp(ctx, organizationId, { name: 'Open' }, SYSTEM),
    await createApp(ctx, organizationId, { name: 'Shut', keylessSdk: false }, SYSTEM),
  ]
  expect((await doctor()).findings).toContainEqual(expect.objectContaining({ check: 'SDKs', state: 'ok' }))
  for (const appId of [open, shut]) await anAddress(appId)
  const finding = (await doctor()).find('SDKs')
  expect(finding).toMatchObject({ state: 'warning', says: expect.stringContaining(open) })
  expect(finding?.says).not.toContain(shut)
})

async function anAddress(appId: string) {
  const [id, now] = [newId(), new Date()]
  await database.db.query(sql`
    insert into users (app_id, id, tags, first_active, created_at, updated_at)
    values (${appId}, ${id}, '{}', ${now}, ${now}, ${now})`)
  await database.db.query(sql`
    insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, enabled, created_at, updated_at)
    values (${appId}, ${newId()}, ${id}, 'Email', 'Email', 'a@example.com', ${sha256('a@example.com')}, true, ${now}, ${now})`)
}
test('the page cost of spinning disks is pointed out', async () => {
  await set('random_page_cost', '1.1')
  expect((await doctor()).find('page cost')?.state).toBe('ok')
  await set('random_page_cost', '4')
  expect((await doctor()).find('page cost')).toMatchObject({ state: 'warning' })
})

test('tables of another version are pointed out', async () => {
  await database.db.query(sql`delete from schema_migrations where version = 4`)
  expect((await doctor()).find('tables')).toMatchObject({ state: 'warning', says: '1 migration to apply' })
  await database.db.query(sql`
    insert into schema_migrations values (9999, '9999_later.sql', 'x', '2030-01-01T00:00:00Z')`)
  const { code, find } = await doctor({ UNSAFE_DURABILITY: 'true' })
  expect(code).toBe(1)
  expect(find('tables')).toMatchObject({ state: 'problem', says: expect.stringContaining('9999_later.sql') })
  expect(find('parked jobs')).toBeUndefined()
})

test('mail that goes out directly, of which nobody hears what comes back, is a warning', async () => {
  const settings = { SMTP_URL: 'direct:', PUBLIC_URL: 'https://bell.example' }
  expect((await doctor(settings)).find('mail')).toMatchObject({
    state: 'warning',
    advice: expect.stringContaining('MAIL_LISTEN'),
  })
  expect((await doctor({ ...settings, MAIL_LISTEN: '127.0.0.1:2525' })).find('mail')?.state).toBe('ok')
})

test('a server that the world does not know by an address is a warning', async () => {
  expect((await doctor()).find('public address')).toMatchObject({
    state: 'warning',
    advice: expect.stringContaining('PUBLIC_URL'),
  })
  const known = { state: 'ok', says: 'https://bell.example' }
  expect((await doctor({ PUBLIC_URL: 'https://bell.example' })).find('public address')).toMatchObject(known)
})
