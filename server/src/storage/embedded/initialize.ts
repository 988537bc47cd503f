import { spawn } from 'node:child_process'
import { appendFile, chown, mkdtemp, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { complaintIn, EmbeddedError, reasonOf } from './error.ts'

export const USER = 'carillon'
export const DATABASE = 'carillon'

export type Initialization = { dataDir: string; logPath: string; account: Account; binaries: Binaries; sync: boolean }

/**
 * Returns the folder with the database, creating it at the first start. A new folder gets its final name when it is
 * complete and synced to disk.
 */
export async function openDatabaseFolder(init: Initialization): Promise<string> {
  const { dataDir, binaries } = init
  const pgData = join(dataDir, 'postgres')
  await removeUnfinished(dataDir)
  const version = await readFile(join(pgData, 'PG_VERSION'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new EmbeddedError(`cannot read the database in ${pgData}: ${reasonOf(error)}`)
  })
  if (version === undefined) await createDatabaseFolder(init, pgData)
  else if (version.trim() !== binaries.major)
    throw new EmbeddedError(
      `the database in ${pgData} was made by PostgreSQL ${version.trim()}, and this is PostgreSQL ${binaries.major}; start the version of Carillon that made it`,
    )
  return pgData
}

async function removeUnfinished(dataDir: string) {
  const unfinished = (await readdir(dataDir)).filter((name) => /^(postgres|programs)\.new-/.test(name))
  for (const name of unfinished) await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10 })
}

async function createDatabaseFolder({ dataDir, logPath, account, binaries, sync }: Initialization, pgData: string) {
  let unfinished: string | undefined
  try {
    unfinished = await mkdtemp(join(dataDir, 'postgres.new-'))
    await chown(unfinished, account.uid, account.gid)
    await runInitdb(account, binaries.initdb, unfinished, logPath, sync)
    await rename(unfinished, pgData)
    if (sync) await syncFolder(dataDir)
  } catch (error) {
    if (unfinished) await rm(unfinished, { recursive: true, force: true, maxRetries: 10 }).catch(() => {})
    throw new EmbeddedError(`cannot create the database in ${dataDir}: ${reasonOf(error)}`)
  }
}

/**
 * Byte-wise sort order and Unicode character classes: the same on every machine and in every version, whatever locales
 * are installed.
 */
const KIND = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']

async function runInitdb(account: Account, initdb: string, folder: string, logPath: string, sync: boolean) {
  const { file, args, options } = account.command(
    initdb,
    [
      `--pgdata=${folder}`,
      `--username=${USER}`,
      '--auth=trust',
      '--data-checksums',
      ...KIND,
      ...(sync ? [] : ['--no-sync']),
    ],
    'SIGKILL',
  )
  const child = spawn(file, args, { ...options, cwd: '/', detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text))
  const ended = await new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve(code ?? signal))
  })
  // On a full disk this fails too, and initdb's own complaint is the one to report.
  await appendFile(logPath, output, { mode: 0o600 }).catch(() => {})
  if (ended !== 0) throw new Error(complaintIn(output) ?? `initdb ended with ${ended}`)
}

async function syncFolder(path: string) {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
