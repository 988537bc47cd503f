// How commands reach the embedded database: while a server runs they use its PostgreSQL, otherwise they start their
// own.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type EmbeddedOptions, startEmbedded } from '../embedded.ts'
import { FolderInUse } from './error.ts'
import { openDataFolder } from './folder.ts'
import { DATABASE, USER } from './initialize.ts'

export type AttachedDatabase = { connection: pg.ClientConfig; close(): Promise<void> }

/** A starting server locks the folder before it answers, and a stopping one holds it a little longer. */
const ATTACH_TIMEOUT_MS = 30_000
const POLL_MS = 100

export async function connectEmbedded({ dataDir, log, settings }: EmbeddedOptions): Promise<AttachedDatabase> {
  const began = performance.now()
  for (;;) {
    try {
      const own = await startEmbedded({ dataDir, log, ...(settings && { settings }) })
      return { connection: own.connection, close: () => own.stop() }
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error
      const connection = await findRunning(await openDataFolder(dataDir))
      if (connection) return { connection, close: async () => {} }
      if (performance.now() - began > ATTACH_TIMEOUT_MS) throw error
      await sleep(POLL_MS)
    }
  }
}

/** Whether this folder contains a database, so that a start would not create one. */
export const hasDatabase = (dataDir: string) =>
  readFile(join(dataDir, 'postgres', 'PG_VERSION')).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  )

/** PostgreSQL writes its socket's folder to the fifth line of its pid file, and its state to the eighth. */
async function findRunning(dataDir: string): Promise<pg.ClientConfig | undefined> {
  const note = await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '')
  const [, , , , host, , , state] = note.split('\n')
  if (!host || state?.trim() !== 'ready') return undefined
  const connection = { host, port: 5432, user: USER, database: DATABASE }
  return (await answers(connection)) ? connection : undefined
}

async function answers(connection: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
