import { hash } from 'node:crypto'
import { access, chown, constants, mkdir, realpath, rename, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { EmbeddedError, reasonOf } from './error.ts'

/** Creates the data folder, or checks that the existing one is usable. Returns its real path. */
export async function openDataFolder(dataDir: string): Promise<string> {
  const path = resolve(dataDir)
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
    if (!(await stat(path)).isDirectory()) throw Object.assign(new Error(), { code: 'EEXIST' })
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
    return await realpath(path)
  } catch (error) {
    throw new EmbeddedError(`cannot use the data folder ${path}: ${reasonOf(error)}`)
  }
}

export const SOCKET_NAME = '.s.PGSQL.5432'
/** A socket's path has at most 108 bytes on Linux and 104 on macOS, including a terminating zero. */
const LONGEST_SOCKET = 103

/**
 * Anyone who can reach the socket is admitted as owner of the database, so its folder is closed to others. It is in the
 * data folder or, if that makes the path too long, in the folder for temporary files. Somebody else may have created it
 * there, so it is created anew: then either we own it, or creating it fails.
 */
export async function openSocketFolder(dataDir: string, owner: { uid: number; gid: number }): Promise<string> {
  const inside = join(dataDir, 'socket')
  const path = fits(inside) ? inside : join(tmpdir(), `carillon-${hash('sha256', dataDir, 'hex').slice(0, 16)}`)
  if (!fits(path))
    throw new EmbeddedError(`the paths ${inside} and ${path} are too long for a socket; choose a shorter data folder`)
  try {
    await rm(path, { recursive: true, force: true })
    await mkdir(path, { mode: 0o700 })
    await chown(path, owner.uid, owner.gid)
    return path
  } catch (error) {
    throw new EmbeddedError(`cannot make the folder ${path} for PostgreSQL's socket: ${reasonOf(error)}`)
  }
}

const fits = (folder: string) => Buffer.byteLength(join(folder, SOCKET_NAME)) <= LONGEST_SOCKET

const LARGEST_LOG = 10 * 1024 * 1024

/** Keeps one older log, and rotates only when the log has become large. */
export async function rotateLog(path: string) {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  )
  if (size > LARGEST_LOG) await rename(path, `${path}.1`)
}

/** A full disk also swallows the log message that would say so. */
export async function isDiskFull(path: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize < 1024 * 1024
}
