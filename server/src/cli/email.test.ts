import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { urlOf } from '../../test/command-line.ts'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { startDns, type TestDns } from '../../test/dns.ts'
import { publish } from '../../test/email.ts'
import { pauseForComplaints } from '../email/pause.ts'
import { systemClock } from '../lib/clock.ts'
import type { DoctorFinding } from './doctor.ts'
import { runCarillon } from './run.ts'

const { now } = systemClock()
let database: TestDatabase
let dns: TestDns
let dataDir: string
let env: Record<string, string>
let app: string
beforeAll(async () => {
  database = await testDatabase()
  dns = await startDns()
  dataDir = await mkdtemp(join(tmpdir(), 'carillon-cli-'))
  env = {
    DATABASE_URL: urlOf(database.connection),
    DATA_DIR: dataDir,
    RESOLVER: dns.address,
    SMTP_URL: 'direct:',
    MAIL_HELO: 'mail.bell.example',
  }
  const { organization_id: organizationId } = await json('org', 'create', '--name', 'Example')
  app = (await json('app', 'create', '--org', organizationId, '--name', 'Shop')).app_id
})
afterAll(async () => {
  await database.close()
  await dns.close()
  await rm(dataDir, { recursive: true })
})

const run = (...args: string[]) => runCarillon(args, env)
async function json(...args: string[]) {
  const { code, out, err } = await run(...args, '--json')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out)
}
const email = (...args: string[]) => json('email', ...args, '--app', app)
const doctor = async (check: string) =>
  (JSON.parse((await run('doctor', '--json')).out) as DoctorFinding[]).filter((it) => it.check === check)

test('nothing is sealed with another key than that of the server: no server would start with it', async () => {
  await email('domains', 'add', 'sealed.example')
  const elsewhere = await mkdtemp(join(tmpdir(), 'carillon-cli-'))
  const add = (settings: object) =>
    runCarillon(['email', 'domains', 'add', 'other.example', '--app', app], { ...env, ...settings })
  const missing = await add({ DATA_DIR: elsewhere })
  expect(missing).toMatchObject({ code: 2, out: '' })
  expect(missing.err).toContain(
    `${elsewhere}/secret-key is missing, and the database holds the DKIM key of sealed.example`,
  )
  expect(await readdir(elsewhere)).toEqual([])
  const wrong = await add({ SECRET_KEY: 'a key that is not that of the server' })
  expect(wrong).toMatchObject({ code: 2, out: '' })
  expect(wrong.err).toContain('SECRET_KEY does not open the DKIM key of sealed.example')
  expect(await email('domains', 'list')).toMatchObject([{ domain: 'sealed.example' }])
  await email('domains', 'remove', 'sealed.example')
  await rm(elsewhere, { recursive: true })
})

test('no records are printed for a server that has no name', async () => {
  for (const nameless of [{}, { PUBLIC_URL: 'http://localhost:3000' }, { PUBLIC_URL: 'https://192.0.2.7' }]) {
    const settings = { ...env, MAIL_HELO: '', ...nameless }
    const { code, out, err } = await runCarillon(
      ['email', 'domains', 'add', 'nameless.example', '--app', app],
      settings,
    )
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain('PUBLIC_URL')
    expect(err).toContain('MAIL_HELO')
  }
  expect((await email('domains', 'list')).map(({ domain }: { domain: string }) => domain)).not.toContain(
    'nameless.example',
  )
  const named = { ...env, MAIL_HELO: '', PUBLIC_URL: 'https://bell.example' }
  const { code, out } = await runCarillon(['email', 'domains', 'add', 'named.example', '--app', app], named)
  expect(code).toBe(0)
  expect(out).toContain('10 bell.example')
  await email('domains', 'remove', 'named.example')
})

test('domains are added, verified, listed, forced and removed', async () => {
  const added = await email('domains', 'add', 'News.example')
  expect(added).toMatchObject({ domain: 'news.example', state: 'pending' })
  const early = await run('email', 'domains', 'verify', 'news.example', '--app', app)
  expect(early.code).toBe(1)
  expect(early.out).toMatch(
    /^news.example is pending\.\n\nmissing {3}TXT c[0-9a-f]+\._domainkey\.news\.example\n {10}v=DKIM1; k=rsa;/,
  )
  publish(dns, added)
  expect(await email('domains', 'verify', 'news.example')).toMatchObject({ state: 'active', activated_by: 'check' })
  await email('domains', 'add', 'inside.example')
  expect(await email('domains', 'activate', 'inside.example', '--force')).toMatchObject({ activated_by: 'force' })
  expect(await email('domains', 'list')).toMatchObject([{ domain: 'inside.example' }, { domain: 'news.example' }])
  expect(await email('domains', 'remove', 'inside.example')).toEqual({ removed: 'inside.example' })
  const again = await run('email', 'domains', 'remove', 'inside.example', '--app', app)
  expect(again).toMatchObject({ code: 1, err: 'carillon: Email domain not found' })
})

test('the doctor sees keys that the secret key does not open', async () => {
  await email('domains', 'add', 'keys.example')
  expect(await doctor('credentials')).toMatchObject([{ state: 'ok' }])
  env.SECRET_KEY = 'another secret key than before'
  expect(await doctor('credentials')).toMatchObject([
    { state: 'problem', says: 'those of 1 app do not open with the secret key' },
  ])
  delete env.SECRET_KEY
  await email('domains', 'remove', 'keys.example')
})

test('the suppression list takes a file, is looked through, and is left', async () => {
  const file = join(dataDir, 'list.csv')
  await writeFile(file, 'email,when\nAnn@example.com,2029\nbob@example.com,2030\n')
  expect(await email('suppressions', 'import', '--file', file)).toEqual({ addresses: 2, added: 2 })
  const again = await run('email', 'suppressions', 'import', '--file', file, '--app', app)
  expect(again.out).toBe('0 addresses added, 2 known already.')
  expect(await email('suppressions', 'list', '--address', 'ANN@example.com')).toMatchObject([
    { address: 'ann@example.com', reason: 'imported', created_by: null },
  ])
  await writeFile(file, 'cy@example.com\nnonsense\n')
  const wrong = await run('email', 'suppressions', 'import', '--file', file, '--app', app)
  expect(wrong).toMatchObject({ code: 1, err: 'carillon: line 2: no email address; nothing was imported' })
  await email('suppressions', 'remove', 'Ann@example.com')
  expect(await email('suppressions', 'list')).toMatchObject([{ address: 'bob@example.com' }])
})

test('email that was paused for complaints is resumed, and the doctor tells of it', async () => {
  await pauseForComplaints(database.db, app, async () => ({ delivered: 100, complained: 50 }), now())
  expect(await doctor('sending')).toMatchObject([
    { state: 'warning', says: `email is paused for ${app}: too many people complained` },
  ])
  expect(await email('resume')).toEqual({ resumed: true })
  expect(await email('resume')).toEqual({ resumed: false })
  expect(await doctor('sending')).toMatchObject([{ state: 'ok' }])
})

test('the doctor says how mail goes out', async () => {
  expect(await doctor('mail')).toMatchObject([{ state: 'warning', says: expect.stringContaining('directly') }])
  env.PUBLIC_URL = 'https://bell.example'
  expect(await doctor('mail')).toMatchObject([{ state: 'warning', says: expect.stringContaining('nobody hears') }])
  env.MAIL_LISTEN = '127.0.0.1:2525'
  expect(await doctor('mail')).toMatchObject([{ state: 'ok' }])
  env.SMTP_URL = 'smtp://u:secret@smtp.example.com'
  expect(await doctor('mail')).toMatchObject([{ state: 'ok', says: 'goes through smtp.example.com:587' }])
  env.SMTP_URL = ''
  expect(await doctor('mail')).toMatchObject([{ state: 'ok', says: expect.stringContaining('is caught and shown') }])
})
