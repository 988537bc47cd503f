import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { carillon, urlOf } from '../../test/command-line.ts'
import { emptyDatabase, type TestDatabase, testDatabase } from '../../test/database.ts'
import { type AppId, newId, SYSTEM_APP_ID } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'
import { commands } from './commands.ts'
import { runCarillon } from './run.ts'

let database: TestDatabase
let dataDir: string
let env: Record<string, string>
beforeAll(async () => {
  database = await testDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'carillon-cli-'))
  env = { DATABASE_URL: urlOf(database.connection), DATA_DIR: dataDir }
})
afterAll(async () => {
  await database.close()
  await rm(dataDir, { recursive: true })
})

const run = (...args: string[]) => runCarillon(args, env)

async function json(...args: string[]) {
  const { code, out, err } = await run(...args, '--json')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out)
}

const anOrganization = async (): Promise<string> => (await json('org', 'create', '--name', 'Example')).organization_id
const anApp = async (): Promise<string> =>
  (await json('app', 'create', '--org', await anOrganization(), '--name', 'Shop')).app_id

describe('what is typed wrong', () => {
  const id = newId()
  const wrong: [string, string, string][] = [
    ['an unknown command', 'orgs', 'there is no command "orgs"\nSee "carillon help".'],
    ['an unknown verb', 'org remove', '"org" is followed by create, list\nSee "carillon help org".'],
    ['an unknown flag', 'app list --colour', 'Unknown option \'--colour\'\nSee "carillon help app list".'],
    ['no command', '--json', '--json needs a command\nSee "carillon help".'],
    ['a missing flag', 'org create', '"org create" needs --name\nSee "carillon help org create".'],
    ['a missing word', 'key revoke --app x', '"key revoke" needs more: '],
    ['a word too many', 'app list all', '"app list" does not take "all"'],
    ['an id that is none', 'app create --org 7 --name x', '--org must be an id, as '],
    ['two owners', `key list --app ${id} --org ${id}`, '"key list" needs either --app or --org'],
    ['an unknown permission', `key create --app ${id} --permission fly`, '--permission: "fly" is none of apps, users,'],
    ['an unknown limit', `app set ${id} --limit user=1`, '--limit: "user" is none of messages, events,'],
    ['a limit that is no number', `app set ${id} --limit view=-1`, '--limit view: "-1" is neither'],
    ['neither on nor off', `app set ${id} --keyless maybe`, '--keyless must be on or off'],
    ['nothing to set', `app set ${id}`, '"app set" needs something to set'],
    ['no jobs', 'jobs release', '"jobs release" needs either job ids or --all'],
    ['a setting that cannot be read', 'app list --port x', '--port must be a port number'],
  ]
  test.each(wrong)('%s', async (_, line, says) => {
    const { code, out, err } = await run(...line.split(' '))
    expect(err).toContain(`carillon: ${says}`)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.split('\n').length).toBeLessThanOrEqual(2)
  })

  test('reaches the caller as exit code and lines of standard error, also from the real process', async () => {
    expect(await carillon(['app', 'list', '--colour'], env)).toEqual({
      code: 2,
      out: '',
      err: 'carillon: Unknown option \'--colour\'\nSee "carillon help app list".\n',
    })
  })
})

describe('help', () => {
  test('names every command', async () => {
    const { code, out } = await run('help')
    expect(code).toBe(0)
    const lines = out.split('\n').map((line) => line.trim())
    for (const { name, summary } of commands)
      expect(
        lines.some((line) => line.startsWith(`${name} `) && line.endsWith(` ${summary}`)),
        name,
      ).toBe(true)
  })

  test.each(commands.map((command) => [command.name, command] as const))('of %s', async (name, command) => {
    const asked = await run('help', ...name.split(' '))
    expect(asked.code).toBe(0)
    for (const part of [command.usage, command.summary, ...command.examples]) expect(asked.out).toContain(part)
    expect(await run(...name.split(' '), '--help')).toEqual(asked)
  })

  test('of a noun explains all its commands', async () => {
    const { out } = await run('key', '--help')
    for (const verb of ['create', 'list', 'revoke']) expect(out).toContain(`carillon key ${verb} `)
  })

  test('gives examples that are understood', async () => {
    for (const { name, examples } of commands)
      for (const example of examples) {
        // Where standard input comes from is the shell's to understand.
        const [written = ''] = example.split(' < ')
        const args = Array.from(written.matchAll(/"([^"]*)"|\S+/g), ([whole, quoted]) => quoted ?? whole).slice(1)
        // Refused for what the database holds, or not at all, but not for how it is written.
        // Not those that look at the world beside the database.
        const [noun = ''] = name.split(' ')
        if (!['doctor', 'email-providers'].includes(noun)) expect((await run(...args)).code, example).not.toBe(2)
      }
  })
})

test('version', async () => {
  expect(await json('version')).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
})

describe('apps', () => {
  test('are created with a key, and listed without', async () => {
    const organizationId = await anOrganization()
    const made = await json('app', 'create', '--org', organizationId, '--name', 'Shop')
    expect(made).toEqual({
      app_id: expect.any(String),
      organization_id: organizationId,
      key: expect.stringMatching(/^os_v2_app_/),
    })
    expect(await json('app', 'list', '--org', organizationId)).toEqual([
      {
        app_id: made.app_id,
        organization_id: organizationId,
        name: 'Shop',
        plan: 'paid',
        limits: {},
        keyless: true,
        require_identity: false,
        has_identity_key: false,
        created_at: expect.stringMatching(/Z$/),
      },
    ])
    const { out } = await run('app', 'list')
    expect(out).toContain(`${made.app_id}  ${organizationId}  paid  Shop`)
    expect(out).not.toContain(made.key)
  })

  test('are not created in an organization that is not there', async () => {
    const { code, err } = await run('app', 'create', '--org', newId(), '--name', 'Shop')
    expect({ code, err }).toEqual({ code: 1, err: 'carillon: Organization not found' })
  })

  test('keep the limits that are not spoken of', async () => {
    const appId = await anApp()
    await json('app', 'set', appId, '--limit', 'view=5', '--limit', 'users.write=50')
    expect((await json('app', 'set', appId, '--limit', 'view=default', '--plan', 'free')).limits).toEqual({
      'users.write': 50,
    })
    expect(await json('app', 'set', appId, '--name', 'Store')).toMatchObject({
      name: 'Store',
      plan: 'free',
      limits: { 'users.write': 50 },
    })
  })

  test('get identity verification with a public key, and not without', async () => {
    const appId = await anApp()
    const refused = await run('app', 'set', appId, '--require-identity', 'on')
    expect(refused).toMatchObject({ code: 1, err: 'carillon: Identity verification needs a public key' })
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const file = join(dataDir, 'public.pem')
    await writeFile(file, publicKey.export({ type: 'spki', format: 'pem' }))
    const set = await json('app', 'set', appId, '--identity-key', file, '--require-identity', 'on', '--keyless', 'off')
    expect(set).toMatchObject({ require_identity: true, has_identity_key: true, keyless: false })
    const absent = await run('app', 'set', appId, '--identity-key', join(dataDir, 'none.pem'))
    expect(absent).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^carillon: cannot read .+none.pem: no such file/),
    })
  })
})

describe('keys', () => {
  test('of an app may be narrowed', async () => {
    const appId = await anApp()
    const options = [
      '--name',
      'Back end',
      '--permission',
      'users',
      '--permission',
      'messages',
      '--allow',
      '192.0.2.0/24',
    ]
    const made = await json('key', 'create', '--app', appId, ...options)
    expect(made).toEqual({ key_id: expect.any(String), app_id: appId, key: expect.stringMatching(/^os_v2_app_/) })
    const listed = await json('key', 'list', '--app', appId)
    expect(listed).toHaveLength(2)
    expect(listed[1]).toEqual({
      key_id: made.key_id,
      name: 'Back end',
      permissions: ['users', 'messages'],
      ip_allowlist_mode: 'explicit',
      ip_allowlist: ['192.0.2.0/24'],
      created_at: expect.any(String),
      last_used_at: null,
    })
  })

  test('of an organization have no permissions', async () => {
    const organizationId = await anOrganization()
    const made = await json('key', 'create', '--org', organizationId)
    expect(made).toMatchObject({ organization_id: organizationId, key: expect.stringMatching(/^os_v2_org_/) })
    expect((await run('key', 'create', '--org', organizationId, '--permission', 'users')).code).toBe(2)
  })

  test('are revoked once, by their owner', async () => {
    const organizationId = await anOrganization()
    const { key_id: keyId } = await json('key', 'create', '--org', organizationId)
    const elsewhere = await run('key', 'revoke', '--org', await anOrganization(), keyId)
    expect(elsewhere).toMatchObject({ code: 1, err: 'carillon: Key not found' })
    expect(await json('key', 'revoke', '--org', organizationId, keyId)).toEqual({ key_id: keyId, revoked: true })
    expect((await run('key', 'revoke', '--org', organizationId, keyId)).code).toBe(1)
    expect(await json('key', 'list', '--org', organizationId)).toHaveLength(1)
  })
})

describe('parked jobs', () => {
  async function aParkedJob(appId: AppId, parkedAt: string): Promise<string> {
    const id = newId()
    await database.db.query(sql`
      insert into jobs (app_id, id, name, key, state, run_at, parked_at, enqueued_at, attempts, last_error)
      values (${appId}, ${id}, 'test.fail', ${id}, 'parked', ${parkedAt}, ${parkedAt}, ${parkedAt}, 5, 'it broke')`)
    return id
  }

  test('of all apps are listed, released and deleted', async () => {
    const [one, other] = [await anApp(), await anApp()]
    const second = await aParkedJob(one, '2030-01-02T00:00:00Z')
    const first = await aParkedJob(other, '2030-01-01T00:00:00Z')
    const third = await aParkedJob(SYSTEM_APP_ID, '2030-01-03T00:00:00Z')

    const listed = await json('jobs', 'list')
    expect(listed.map((job: { job_id: string }) => job.job_id)).toEqual([first, second, third])
    expect(listed[0]).toEqual({
      job_id: first,
      app_id: other,
      name: 'test.fail',
      key: first,
      parked_at: '2030-01-01T00:00:00.000Z',
      attempts: 5,
      crashes: 0,
      last_error: 'it broke',
    })
    expect((await run('jobs', 'list', '--limit', '1')).out).toContain('2 more; see them with --limit 3.')

    expect(await json('jobs', 'release', second)).toEqual({ released: 1 })
    expect(await run('jobs', 'release', second)).toMatchObject({ code: 1 })
    expect(await json('jobs', 'delete', '--all', '--app', other)).toEqual({ deleted: 1 })
    expect(await json('jobs', 'delete', '--all')).toEqual({ deleted: 1 })
    expect((await run('jobs', 'list')).out).toBe('There are no parked jobs.')
    expect(await database.db.query(sql`select id, state, attempts from jobs where name = 'test.fail'`)).toEqual([
      { id: second, state: 'ready', attempts: 0 },
    ])
  })
})

describe('a database', () => {
  let empty: TestDatabase
  beforeAll(async () => {
    empty = await emptyDatabase()
  })
  afterAll(() => empty.close())
  const runOnEmpty = (...args: string[]) => runCarillon(args, { ...env, DATABASE_URL: urlOf(empty.connection) })

  test('that cannot be reached is one line', async () => {
    const url = 'postgres://nobody@127.0.0.1:1/none'
    const { code, out, err } = await runCarillon(['app', 'list'], { DATABASE_URL: url })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toBe('carillon: cannot reach the database of DATABASE_URL at 127.0.0.1:1 (ECONNREFUSED)')
  })

  test('that is empty gets its tables from the first organization', async () => {
    expect(await runOnEmpty('app', 'list')).toMatchObject({
      code: 1,
      err: 'carillon: this database is still empty; start the server, or run "carillon org create"',
    })
    expect((await runOnEmpty('migrate', '--dry-run')).out).toContain('0001_organizations_apps_keys.sql')
    expect((await runOnEmpty('org', 'create', '--name', 'First')).code).toBe(0)
    expect(JSON.parse((await runOnEmpty('migrate', '--json')).out)).toEqual({ applied: [] })
  })

  test('that is older is migrated when told, not by the way', async () => {
    await empty.db.query(
      sql`delete from schema_migrations where version = (select max(version) from schema_migrations)`,
    )
    for (const args of [
      ['app', 'list'],
      ['org', 'create', '--name', 'Second'],
    ])
      expect(await runOnEmpty(...args)).toMatchObject({
        code: 1,
        err: 'carillon: the database is older than this version of Carillon; run "carillon migrate" first',
      })
    const { pending } = JSON.parse((await runOnEmpty('migrate', '--dry-run', '--json')).out)
    expect(pending).toHaveLength(1)
  })

  test('that is newer is left alone', async () => {
    await empty.db.query(sql`
      insert into schema_migrations values (9999, '9999_later.sql', 'x', '2030-01-01T00:00:00Z')`)
    for (const args of [['app', 'list'], ['migrate']])
      expect(await runOnEmpty(...args)).toMatchObject({
        code: 1,
        err: expect.stringContaining('has migration 9999_later.sql, which this version of Carillon does not know'),
      })
  })

  test('without Citus is not distributed', async () => {
    expect(await run('db', 'distribute')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^carillon: the database has no Citus; .+$/),
    })
    const { statements } = await json('db', 'distribute', '--dry-run')
    expect(statements[0]).toBe("select create_reference_table('organizations');")
  })
})

test('organizations are listed with how many apps they have', async () => {
  const organizationId = await anOrganization()
  await json('app', 'create', '--org', organizationId, '--name', 'One')
  await json('app', 'create', '--org', organizationId, '--name', 'Two')
  expect(await json('org', 'list')).toContainEqual({
    organization_id: organizationId,
    name: 'Example',
    apps: 2,
    created_at: expect.stringMatching(/^\d{4}-/),
  })
  expect((await run('org', 'list')).out).toMatch(
    new RegExp(`^ORGANIZATION .*\n(.*\n)*${organizationId} +2 +Example$`, 'm'),
  )
})
