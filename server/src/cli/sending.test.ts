import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { urlOf } from '../../test/command-line.ts'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { anId } from '../../test/users.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createLog } from '../lib/log.ts'
import { secretBox } from '../lib/secrets.ts'
import { readSending } from '../sending/read.ts'
import { reserveMessages } from '../sending/reserve.ts'
import { guardRestore } from '../sending/restore-guard.ts'
import { sealedWebhookSecret } from '../sending/webhook-secret.ts'
import { sql } from '../storage/sql.ts'
import type { DoctorFinding } from './doctor.ts'
import { runCarillon } from './run.ts'

const { now } = systemClock()
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

async function anApp(): Promise<string> {
  const { organization_id: organizationId } = await json('org', 'create', '--name', 'Example')
  return (await json('app', 'create', '--org', organizationId, '--name', 'Shop')).app_id
}

const sendingOf = (appId: string) => readSending(database.db, appId, now())
const doctor = async (): Promise<string[]> => {
  const findings: DoctorFinding[] = JSON.parse((await run('doctor', '--json')).out)
  return findings.filter(({ check }) => check === 'sending').map(({ state, says }) => `${state}: ${says}`)
}

/** With one subscription, and more sent than that allows. */
async function aDisabledApp(): Promise<string> {
  const appId = await anApp()
  await database.db.query(sql`insert into player_counts (app_id, slot, players, subscribed) values (${appId}, 0, 1, 1)`)
  await database.db.transaction((db) => reserveMessages(db, appId, 11, now()))
  return appId
}

describe('pause and resume', () => {
  test('of one app', async () => {
    const [appId, other] = [await anApp(), await anApp()]
    expect(await json('pause', '--app', appId)).toMatchObject({
      app_id: appId,
      state: 'held',
      hold: { reason: 'paused' },
    })
    expect((await sendingOf(appId)).hold).toMatchObject({ reason: 'paused' })
    expect((await sendingOf(other)).hold).toBeUndefined()
    for (const named of [[appId], ['--app', appId]])
      expect((await run('sending', 'show', ...named)).out).toMatch(/state +held: paused since \d{4}-.+Z$/m)
    for (const named of [[], [appId, '--app', appId]])
      expect(await run('sending', 'show', ...named)).toMatchObject({
        code: 2,
        err: expect.stringContaining('"sending show" takes one app: APP_ID or --app APP_ID'),
      })
    expect(await doctor()).toEqual([`warning: paused for ${appId}`])
    expect(await json('resume', '--app', appId)).toMatchObject({ state: 'sending' })
    expect(await doctor()).toEqual(['ok: goes on for every app'])
  })

  test('of the server', async () => {
    const appId = await anApp()
    expect(await json('pause')).toEqual({ paused_since: anyTime, restored_since: null, discard_before: null })
    expect((await sendingOf(appId)).hold).toMatchObject({ reason: 'server_paused' })
    expect(await doctor()).toEqual([expect.stringMatching(/^warning: paused since .+Z$/)])
    expect((await run('resume')).out).toBe('Sending of this server: goes on.')
    expect((await sendingOf(appId)).hold).toBeUndefined()
  })

  test('of an app that is not there', async () => {
    for (const verb of ['pause', 'resume'])
      expect(await run(verb, '--app', newId())).toMatchObject({ code: 1, err: 'carillon: App not found' })
  })

  test.each([['--send --discard'], [`--app ${newId()} --send`]])('resume %s is wrong usage', async (flags) => {
    expect(await run('resume', ...flags.split(' '))).toMatchObject({
      code: 2,
      err: expect.stringContaining('"resume" takes one of --app, --send and --discard'),
    })
  })

  test('after a restore asks what becomes of what is due', async () => {
    const log = createLog('silent')
    for (const epoch of ['a', 'b']) await guardRestore(database.db, epoch, now(), log)
    expect(await doctor()).toEqual([expect.stringMatching(/^problem: held since .+: the database was restored/)])
    expect(await run('resume')).toMatchObject({ code: 1, err: expect.stringMatching(/--send .+ --discard/) })
    expect((await run('pause')).out).toMatch(/^Sending of this server: held after a restore since /)
    expect(await json('resume', '--discard')).toEqual({
      paused_since: null,
      restored_since: null,
      discard_before: anyTime,
    })
    expect(await run('resume', '--discard')).toMatchObject({ code: 1, err: expect.stringContaining('not restored') })
  })
})

const anyTime = expect.stringMatching(/^\d{4}-.+Z$/)

describe('an app that is disabled', () => {
  test('is enabled, and shown', async () => {
    const appId = await aDisabledApp()
    expect((await run('sending', 'show', appId)).out).toMatch(
      /^state +held: disabled since .+\nuntil +.+Z\nused +10 of 10 messages within 15 minutes$/m,
    )
    expect(await doctor()).toEqual([expect.stringContaining(`warning: disabled for ${appId}`)])
    expect(await json('sending', 'enable', appId)).toMatchObject({ state: 'sending', usage: { used: 0, limit: 10 } })
    expect(await run('sending', 'enable', newId())).toMatchObject({ code: 1, err: 'carillon: App not found' })
  })
})

describe('administrators', () => {
  test('are added, listed and removed', async () => {
    const appId = await anApp()
    const url = 'https://example.com/notices'
    const added = await json('administrator', 'add', '--app', appId, '--email', 'ops@example.com', '--webhook-url', url)
    expect(added).toEqual({
      id: anId(),
      email: 'ops@example.com',
      webhook_url: url,
      created_at: anyTime,
      webhook_secret: expect.stringMatching(/^whsec_/),
    })
    const { webhook_secret: _, ...shown } = added
    expect(await json('administrator', 'list', '--app', appId)).toEqual([shown])
    expect((await run('administrator', 'list', '--app', appId)).out).toContain(`${added.id}  ops@example.com  ${url}`)
    expect(await json('administrator', 'remove', added.id, '--app', appId)).toEqual({ removed: added.id })
    expect((await run('administrator', 'list', '--app', appId)).out).toBe('There are no administrators.')
    expect(await run('administrator', 'remove', added.id, '--app', appId)).toMatchObject({ code: 1 })
  })

  test('have a secret that the server can open', async () => {
    const appId = await anApp()
    const added = await json('administrator', 'add', '--app', appId, '--webhook-url', 'https://example.com/')
    const [row] = await database.db.query<{ webhookSecret: string }>(
      sql`select webhook_secret from app_administrators where app_id = ${appId}`,
    )
    const secrets = secretBox((await readFile(join(dataDir, 'secret-key'), 'utf8')).trim())
    expect(sealedWebhookSecret(secrets, appId, added.id).open(row?.webhookSecret ?? '')).toBe(added.webhook_secret)
  })

  test('need an address', async () => {
    expect(await run('administrator', 'add', '--app', await anApp())).toMatchObject({
      code: 1,
      err: 'carillon: An administrator needs an email or a webhook_url',
    })
  })
})
