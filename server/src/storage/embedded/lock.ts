import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EmbeddedError, FolderInUse, reasonOf } from './error.ts'

const SQLITE_BUSY = 5

/**
 * Allows one server at a time per data folder. The lock is SQLite's on an empty file: a kernel lock that two starting
 * servers cannot both get, that ends with its process however it ends, and that is visible from other containers on the
 * same folder. A pid file has none of these properties; the pid is written beside the lock only for the error message.
 */
export async function lockFolder(dataDir: string): Promise<{ release(): Promise<void> }> {
  const note = join(dataDir, 'server.pid')
  const lock = takeLock(join(dataDir, 'lock'))
  if (lock === undefined) {
    const pid = await readFile(note, 'utf8').then(
      (text) => (/^\d+/.test(text) ? ` (pid ${text.trim()})` : ''),
      () => '',
    )
    throw new FolderInUse(`another Carillon${pid} is using ${dataDir}`)
  }
  try {
    await writeFile(note, `${process.pid}\n`)
  } catch (error) {
    lock.close()
    throw new EmbeddedError(`cannot use the data folder ${dataDir}: ${reasonOf(error)}`)
  }
  return {
    async release() {
      if (!lock.isOpen) return
      await rm(note, { force: true })
      lock.close()
    },
  }
}

function takeLock(path: string): DatabaseSync | undefined {
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(path, { timeout: 0 })
    lock.exec('pragma journal_mode = memory')
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined
    throw new EmbeddedError(`cannot lock ${path}: ${reasonOf(error)}`)
  }
}
