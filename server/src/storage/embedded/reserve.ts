// When PostgreSQL has no disk space for its write-ahead log it exits, and reads fail too until an operator intervenes.
// So writes stop while a little space is left, and at that moment a reserve file is deleted: whatever filled the disk
// could not use that space.

import { randomBytes } from 'node:crypto'
import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../lib/log.ts'

export type Reserve = {
  /** False from the moment the disk is nearly full until there is enough space again. */
  mayWrite(): boolean
  close(): Promise<void>
}

const MB = 1024 * 1024
/** Four segments of the write-ahead log; while writes are refused, what is still written fills one in a day. */
const RESERVE_BYTES = 64 * MB
const LEAST_BYTES = 32 * MB
/** Recreating the reserve must not make the disk nearly full again. */
const ENOUGH_BYTES = RESERVE_BYTES + 2 * LEAST_BYTES
const POLL_MS = 250

export async function keepReserve(dataDir: string, log: Log): Promise<Reserve> {
  const file = join(dataDir, 'reserve')
  let isLow = false
  let looking: Promise<void> | undefined

  async function look() {
    const free = await freeBytes(dataDir)
    if (!isLow && free < LEAST_BYTES) {
      isLow = true
      await rm(file, { force: true })
      log.error(`the disk of ${dataDir} is nearly full: refusing writes until ${ENOUGH_BYTES / MB} MB are free`)
    } else if (isLow && free >= ENOUGH_BYTES) {
      await layIn(file)
      isLow = false
      log.info(`the disk of ${dataDir} has room again: accepting writes`)
    } else if (!isLow && free >= ENOUGH_BYTES && !(await exists(file))) await layIn(file)
  }

  const lookQuietly = () => {
    looking ??= look()
      .catch((error: Error) => log.debug({ reason: error.message }, 'Could not read the free disk space'))
      .finally(() => {
        looking = undefined
      })
    return looking
  }
  // Creating the reserve takes a while, and the first requests need not wait for it.
  if ((await freeBytes(dataDir).catch(() => 0)) < LEAST_BYTES) await lookQuietly()
  const timer = setInterval(() => void lookQuietly(), POLL_MS).unref()
  return {
    mayWrite: () => !isLow,
    async close() {
      clearInterval(timer)
      await looking
    },
  }
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

const exists = (path: string) =>
  stat(path).then(
    ({ size }) => size === RESERVE_BYTES,
    () => false,
  )

/** Random bytes, which no file system can compress. */
async function layIn(path: string) {
  const unfinished = `${path}.new`
  const file = await open(unfinished, 'w', 0o600)
  try {
    const chunk = randomBytes(MB)
    for (let written = 0; written < RESERVE_BYTES; written += MB) await file.write(chunk)
  } finally {
    await file.close()
  }
  await rename(unfinished, path)
}
