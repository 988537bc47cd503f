import { execFile, spawnSync } from 'node:child_process'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { flagName, settings } from '../../src/settings/config.ts'
import { createUser, freshFolder, isRoot, launch, mountAt, NOBODY, PROJECT, printedKeys, viewUser } from './launch.ts'

const KEYS = /(os_v2_(?:org|app)_\w+)/

test('the first start prints working keys once and keeps them; the next ones find everything again', async () => {
  const first = await launch()
  const url = await first.ready()
  const keys = printedKeys(first.out())
  expect(first.out()).toContain(`address            ${url}\n`)
  for (const page of [`${url}/docs`, `${url}/demo`]) expect(first.out()).toContain(` ${page}\n`)
  expect(Number(new URL(url).port)).toBeGreaterThan(0)
  const file = join(first.dataDir, 'first-keys.json')
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
    organization_id: keys.organizationId,
    organization_key: keys.organizationKey,
    app_id: keys.appId,
    app_key: keys.appKey,
  })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(first.dataDir)).mode & 0o077).toBe(0)

  // What is printed is what an operator pastes.
  const command = /^ {2}(curl [\s\S]+?'\{.+\}')$/m.exec(first.out())?.[1] ?? ''
  const { stdout } = await promisify(execFile)('sh', ['-c', `${command} --silent --write-out '%{http_code}'`])
  expect(stdout).toMatch(/"external_id":"you".+201$/)
  await first.stop()

  const second = await launch({ dataDir: first.dataDir })
  const again = await second.ready()
  expect(second.out()).not.toMatch(KEYS)
  expect((await viewUser(again, keys, 'you')).status).toBe(200)
  await second.stop()
})

test('the first organization can be given', async () => {
  const organizationId = '11111111-2222-4333-8444-555555555555'
  const organizationKey = 'given_by_the_operator_0123456789abcdef'
  const server = await launch({ env: { CARILLON_ORG_ID: organizationId, CARILLON_ORG_KEY: organizationKey } })
  const url = await server.ready()
  const keys = printedKeys(server.out())
  expect(keys).toMatchObject({ organizationId, organizationKey })
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Key ${organizationKey}` } })
  expect(metrics.status).toBe(200)
  await server.stop()
})

test('npm start works with the clone and the data in root’s own closed home', async ({ skip }) => {
  if (!isRoot) skip('needs root')
  const home = join(await freshFolder(), 'root')
  await mkdir(home, { mode: 0o700 })
  const clone = join(home, 'clone')
  if (!(await mountAt(clone, '--bind', PROJECT))) skip('mounting is forbidden here')
  const server = await launch({
    dataDir: join(home, 'data'),
    command: ['npm', 'start'],
    env: { HOME: home },
    options: { cwd: clone },
  })
  const url = await server.ready()
  expect((await createUser(url, printedKeys(server.out()), 'a')).status).toBe(201)
  await server.stop()
})

test('an ordinary user starts it as well', async ({ skip }) => {
  if (!isRoot) skip('needs root, to become somebody else')
  const folder = await freshFolder()
  const clone = join(folder, 'clone')
  if (!(await mountAt(clone, '--bind', PROJECT))) skip('mounting is forbidden here')
  const home = join(folder, 'home')
  spawnSync('install', ['-d', '-o', String(NOBODY.uid), '-g', String(NOBODY.gid), home])
  const server = await launch({
    dataDir: join(home, 'data'),
    command: ['npm', 'start'],
    env: { HOME: home },
    options: { cwd: clone, ...NOBODY },
  })
  const url = await server.ready()
  expect((await createUser(url, printedKeys(server.out()), 'a')).status).toBe(201)
  expect(await stat(join(home, 'data', 'first-keys.json'))).toMatchObject({ uid: NOBODY.uid })
  await server.stop()
})

test('--help names every setting, and starts nothing', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['server/run.mjs', 'main', ...args], { cwd: PROJECT, encoding: 'utf8' })
  for (const args of [['--help'], ['-h'], ['--port', '8080', '--help']]) {
    const { status, stdout, stderr } = run(...args)
    expect([status, stderr]).toEqual([0, ''])
    for (const { env } of Object.values(settings)) expect(stdout).toContain(`${flagName(env)}, ${env}`)
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
  }
  expect(run('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  expect(run('--colour').stderr).toContain('npm start -- --help')
})

test('stand-ins in any order: an app from before gets their credentials, and later starts without them say so', async () => {
  const first = await launch({ env: { LOG_LEVEL: 'warn' } })
  await first.ready()
  const keys = printedKeys(first.out())
  await first.stop()
  const { dataDir } = first
  const standIns = /still use --sink credentials.*First app \(APNs, FCM, Huawei, ADM, WNS, SMS\)/
  expect(first.err()).not.toMatch(standIns)

  const second = await launch({ dataDir, env: { SINK: 'true' } })
  const url = await second.ready()
  const headers = { authorization: `Key ${keys.appKey}`, 'content-type': 'application/json' }
  const ask = async (path: string, body: object) =>
    (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  await ask(`/apps/${keys.appId}/users`, {
    identity: { external_id: 'you' },
    subscriptions: [{ type: 'AndroidPush', token: 'any-token' }],
  })
  const sent = await ask('/notifications', {
    app_id: keys.appId,
    target_channel: 'push',
    include_aliases: { external_id: ['you'] },
    contents: { en: 'They ring' },
  })
  expect(sent).toEqual({ id: expect.any(String), external_id: null, recipients: 1 })
  const control = /can be read at (\S+)\/deliveries/.exec(second.out())?.[1]
  await expect
    .poll(async () => (await fetch(`${control}/deliveries`)).json())
    .toMatchObject([{ channel: 'fcm', to: 'any-token', text: 'They ring' }])
  await second.stop()

  const third = await launch({ dataDir, env: { LOG_LEVEL: 'warn', LOG_FORMAT: 'pretty' } })
  await third.ready()
  await third.stop()
  expect(third.err()).toMatch(standIns)
  expect(third.err()).toMatch(/^\d\d:\d\d:\d\d warn {2}\S/m)
})
