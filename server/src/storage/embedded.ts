// A real PostgreSQL that the server starts itself, so that one command is enough to run it. In the data folder:
//   postgres/: the database
//   postgres.log: the output of initdb and PostgreSQL
//   socket/: the socket that clients connect to
//   lock, server.pid: allow one server at a time

import { chmod, chown, lchown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { Log } from '../lib/log.ts'
import { type Account, canReach, chooseAccount } from './embedded/account.ts'
import { findBinaries } from './embedded/binaries.ts'
import { EmbeddedError, reasonOf } from './embedded/error.ts'
import { openDataFolder, openSocketFolder, rotateLog } from './embedded/folder.ts'
import { DATABASE, openDatabaseFolder, USER } from './embedded/initialize.ts'
import { lockFolder } from './embedded/lock.ts'
import { serverArguments } from './embedded/settings.ts'
import { type Supervised, supervise } from './embedded/supervise.ts'

export { EmbeddedError } from './embedded/error.ts'

export type EmbeddedPostgres = Supervised & { connection: pg.ClientConfig }

export type EmbeddedOptions = {
  dataDir: string
  log: Log
  /** PostgreSQL settings that override ours; tests turn fsync off. */
  settings?: Record<string, string>
}

export async function startEmbedded({ dataDir, log, settings }: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const folder = await openDataFolder(dataDir)
  const lock = await lockFolder(folder)
  try {
    const server = await startServer(folder, log, settings)
    return {
      ...server,
      async stop() {
        await server.stop()
        await lock.release()
      },
    }
  } catch (error) {
    await lock.release()
    if (error instanceof EmbeddedError) throw error
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    throw new EmbeddedError(`cannot start PostgreSQL in ${folder}: ${reasonOf(error)}`)
  }
}

async function startServer(dataDir: string, log: Log, settings?: Record<string, string>): Promise<EmbeddedPostgres> {
  const account = await chooseAccount()
  await admit(account, dataDir)
  const binaries = await findBinaries(account, dataDir)
  const logPath = join(dataDir, 'postgres.log')
  await rotateLog(logPath)
  const sync = settings?.fsync !== 'off'
  const pgData = await openDatabaseFolder({ dataDir, logPath, account, binaries, sync })
  await giveTo(account, pgData)
  const socketDir = await openSocketFolder(dataDir, account)
  const command = account.command(binaries.postgres, ['-D', pgData, ...serverArguments(socketDir, settings)], 'SIGINT')
  const supervised = await supervise({ command, pgData, socketDir, logPath, log })
  const connection = { host: socketDir, port: 5432, user: USER, database: DATABASE }
  try {
    await createDatabase(connection)
  } catch (error) {
    await supervised.stop()
    throw new EmbeddedError(`PostgreSQL in ${dataDir} does not answer: ${reasonOf(error)}`)
  }
  log.debug({ pid: supervised.pid(), account: account.kind }, 'PostgreSQL is running')
  return { ...supervised, connection }
}

/** Makes sure that PostgreSQL's account can enter the data folder, which may be open to root only. */
async function admit(account: Account, dataDir: string) {
  if (account.kind === 'nobody') {
    // The account's group may pass through to its own folders; nobody else may, and nothing can be listed.
    await chown(dataDir, process.getuid?.() ?? 0, account.gid)
    await chmod(dataDir, 0o710)
  }
  if (!(await canReach(account, dataDir, '-x')))
    throw new EmbeddedError(
      `PostgreSQL cannot run as root, and without root's rights it cannot reach ${dataDir}; choose a data folder such as /var/lib/carillon, or start as an ordinary user`,
    )
}

/** Root's database changes owner when user namespaces become allowed or forbidden; an ordinary user's does not. */
async function giveTo(account: Account, path: string) {
  const { uid } = await stat(path)
  if (uid === account.uid) return
  const others = account.kind === 'namespace' ? 65_534 : 0
  if (process.getuid?.() !== 0 || uid !== others)
    throw new EmbeddedError(`${path} belongs to user id ${uid}; start Carillon as that user`)
  await lchown(path, account.uid, account.gid)
  for (const entry of await readdir(path, { recursive: true }))
    await lchown(join(path, entry), account.uid, account.gid)
}

async function createDatabase(connection: pg.ClientConfig) {
  const client = new pg.Client({ ...connection, database: 'postgres', connectionTimeoutMillis: 10_000 })
  await client.connect()
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE])
    if (rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(DATABASE)}`)
  } finally {
    await client.end()
  }
}
