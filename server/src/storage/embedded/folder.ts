import { hash } from 'node:crypto'
import { access, chown, constants, mkdir, realpath, rename, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { EmbeddedError, reasonOf } from './error.ts'

/** Make the data folder, or see that the one that is there can be used; its real path comes back. */
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
/** A socket's path has at most 108 bytes on Linux and 104 on macOS, with a zero at the end. */
const LONGEST_SOCKET = 103

/**
 * Whoever reaches the socket is let in as the owner of everything, so the folder around it is closed to others.
 * It is in the data folder, or, where that makes the path too long, under the folder for temporary files. There
 * somebody else may have made it, so it is made anew: then it is ours, or it cannot be made.
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

/** The log of the runs before is kept once, and only when it has grown. */
export async function rotateLog(path: string) {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  )
  if (size > LARGEST_LOG) await rename(path, `${path}.1`)
}

/** A full disk also swallows the log that would say so. */
export async function isDiskFull(path: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize < 1024 * 1024
}
