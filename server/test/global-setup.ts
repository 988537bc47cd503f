// One PostgreSQL for the whole run, with one migrated template; each test file clones what it needs from it.
// TEST_DATABASE_URL (a superuser's) runs the same tests on another PostgreSQL.

import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { startEmbedded } from '../src/storage/embedded.ts'
import { migrate } from '../src/storage/migrate.ts'

/** Everything a test file needs to make databases: plain values, because it runs in another process. */
export type TestServer = {
  admin: { host: string; port: number; user: string; password: string | undefined; ssl: boolean; database: string }
  template: string
}

declare module 'vitest' {
  export interface ProvidedContext {
    server: TestServer
  }
}

export default async function setup(project: TestProject) {
  const compiled = await keepCompiled()
  const url = process.env.TEST_DATABASE_URL
  const { connection, stop } = url ? { connection: { connectionString: url }, stop: async () => {} } : await embedded()
  const { host, port, user, password, ssl, database } = new pg.Client(connection)
  const admin = {
    host,
    port,
    user: user as string,
    password: password ?? undefined,
    ssl: Boolean(ssl),
    database: database as string,
  }
  const template = `carillon_test_${newId().slice(0, 8)}`
  try {
    await withAdmin(admin, (client) => client.query(`create database ${template}`))
    await migrate({ ...admin, database: template }, new Date())
  } catch (error) {
    await stop()
    throw error
  }
  project.provide('server', { admin, template })

  return async () => {
    await withAdmin(admin, async (client) => {
      const { rows } = await client.query('select datname from pg_database where starts_with(datname, $1)', [template])
      for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`)
    })
    await stop()
    // Who has just ended may still be writing there.
    await rm(compiled, { recursive: true, maxRetries: 5, retryDelay: 200 })
  }
}

/**
 * Where servers and commands that tests start find themselves compiled, which is half of what a start costs. Only who ends by itself
 * leaves anything there, so one does before all those that are killed.
 */
async function keepCompiled(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-compiled-'))
  process.env.NODE_COMPILE_CACHE = folder
  const launcher = fileURLToPath(new URL('../run.mjs', import.meta.url))
  spawnSync(process.execPath, [launcher, 'main', '--no-such-setting'], { stdio: 'ignore' })
  return folder
}

async function embedded() {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-test-'))
  const settings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', shared_buffers: '128MB' }
  const server = await startEmbedded({ dataDir, log: createLog('warn'), settings })
  return {
    connection: server.connection,
    async stop() {
      await server.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

async function withAdmin(admin: TestServer['admin'], run: (client: pg.Client) => Promise<unknown>) {
  const client = new pg.Client(admin)
  await client.connect()
  try {
    await run(client)
  } finally {
    await client.end()
  }
}
