import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { urlOf } from '../command-line.ts'
import { emptyDatabase, type TestDatabase } from '../database.ts'
import { createUser, freshFolder, isReady, launch, PROJECT, printedKeys, until } from './launch.ts'

const databases: TestDatabase[] = []
const holders: ChildProcess[] = []
afterEach(async () => {
  await Promise.all(databases.splice(0).map((database) => database.close()))
  for (const holder of holders.splice(0)) {
    holder.kill('SIGTERM')
    await once(holder, 'exit')
  }
})

const UNSAFE = { UNSAFE_DURABILITY: 'true' }

async function external() {
  const database = await emptyDatabase()
  databases.push(database)
  return { database, url: urlOf(database.connection) }
}

test('on an external database the keys are shown by the first of several servers alone, and no PostgreSQL is started', async () => {
  const { url } = await external()
  const servers = await Promise.all([1, 2].map(() => launch({ env: { ...UNSAFE, DATABASE_URL: url } })))
  const urls = await Promise.all(servers.map((server) => server.ready()))
  const shown = servers.filter((server) => server.out().includes('app key'))
  expect(shown).toHaveLength(1)
  const keys = printedKeys(shown[0]?.out() ?? '')
  for (const [i, at] of urls.entries()) expect((await createUser(at, keys, `u${i}`)).status).toBe(201)
  for (const server of servers) {
    expect(await readdir(server.dataDir).catch(() => [])).not.toContain('postgres')
    await server.stop()
  }
})

test('roles: one answers and does no background work, another works and does not listen', async () => {
  const { database, url } = await external()
  const slots = async () => (await database.db.query({ text: 'select name from schedule_slots', values: [] })).length
  const api = await launch({ env: { ...UNSAFE, DATABASE_URL: url, ROLE: 'api' } })
  const at = await api.ready()
  expect((await createUser(at, printedKeys(api.out()), 'a')).status).toBe(201)
  expect(await slots()).toBe(0)
  const worker = await launch({ env: { ...UNSAFE, DATABASE_URL: url, ROLE: 'worker' } })
  await until(async () => (await slots()) > 0)
  await until(() => worker.out().includes('works in the background'))
  expect(worker.out()).not.toContain('listens')
  await worker.stop()
  await api.stop()
})

test('a worker and an API whose database goes away stay, and stop cleanly without it', async () => {
  const dataDir = join(await freshFolder(), 'elsewhere')
  const program = fileURLToPath(new URL('../embedded-process.ts', import.meta.url))
  const holder = spawn(process.execPath, [program, dataDir], { cwd: PROJECT, stdio: ['ignore', 'pipe', 'inherit'] })
  holders.push(holder)
  await once(createInterface(holder.stdout), 'line')
  const url = `postgres:///carillon?host=${encodeURIComponent(join(dataDir, 'socket'))}&user=carillon`
  const env = { ...UNSAFE, DATABASE_URL: url, LOG_LEVEL: 'silent' }
  const api = await launch({ env: { ...env, ROLE: 'api' } })
  const at = await api.ready()
  const worker = await launch({ env: { ...env, ROLE: 'worker' } })
  await until(() => worker.out().includes('works in the background'))
  holder.kill('SIGTERM')
  await once(holder, 'exit')
  holders.pop()
  await until(async () => !(await isReady(at)))
  expect((await fetch(`${at}/health`)).status).toBe(200)
  expect([worker.child.exitCode, worker.child.signalCode]).toEqual([null, null])
  await Promise.all([worker.stop(), api.stop()])
})
