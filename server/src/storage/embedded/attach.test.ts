import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../lib/log.ts'
import { startEmbedded } from '../embedded.ts'
import { connectEmbedded, hasDatabase } from './attach.ts'
import { findServerProcesses } from './leftovers.ts'
import { lockFolder } from './lock.ts'

let home: string
let dataDir: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'carillon-attach-'))
  dataDir = join(home, 'data')
})
afterAll(() => rm(home, { recursive: true, force: true }))

const options = () => ({ dataDir, log: createLog('silent'), settings: { fsync: 'off' } })
const processes = () => findServerProcesses(join(dataDir, 'postgres'))

async function ask(connection: pg.ClientConfig): Promise<unknown> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query('select current_database() as name')).rows[0].name
  } finally {
    await client.end()
  }
}

test('beside a server that is still making its database it waits, then uses that one, and leaves it running', async () => {
  expect(await hasDatabase(dataDir)).toBe(false)
  const starting = startEmbedded(options())
  await expect.poll(() => readdir(dataDir).catch(() => []), { interval: 5, timeout: 10_000 }).toContain('server.pid')
  const attached = await connectEmbedded(options())
  const server = await starting
  try {
    expect(await ask(attached.connection)).toBe('carillon')
    expect(attached.connection.host).toBe(server.connection.host)
    await attached.close()
    expect(server.pid()).toBeDefined()
    expect(await ask(server.connection)).toBe('carillon')
    expect(await hasDatabase(dataDir)).toBe(true)
  } finally {
    await server.stop()
  }
})

test('without a server it starts one, and ends it', async () => {
  const own = await connectEmbedded(options())
  try {
    expect(await ask(own.connection)).toBe('carillon')
  } finally {
    await own.close()
  }
  expect(await processes()).toEqual([])
})

test('when the server that had the folder is gone, it takes its place', async () => {
  const lock = await lockFolder(dataDir)
  const connecting = connectEmbedded(options())
  await lock.release()
  const own = await connecting
  expect(await ask(own.connection)).toBe('carillon')
  await own.close()
})

test('what keeps it from starting is not waited for', async () => {
  const dataDir = join(home, 'broken')
  await mkdir(join(dataDir, 'lock'), { recursive: true })
  await expect(connectEmbedded({ ...options(), dataDir })).rejects.toThrow(/^cannot lock /)
})
