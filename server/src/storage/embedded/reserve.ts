// PostgreSQL that finds no room for its log ends, and reads end with it until an operator comes. So writes stop while a
// little is left, and a reserve on the disk is given up in that moment: whoever filled the disk has not got that.

import { randomBytes } from 'node:crypto'
import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../lib/log.ts'

export type Reserve = {
  /** False from the moment the disk is nearly full until there is room again. */
  mayWrite(): boolean
  close(): Promise<void>
}

const MB = 1024 * 1024
/** Four segments of PostgreSQL's log; what is written while nobody may write fills one in a day. */
const RESERVE_BYTES = 64 * MB
const LEAST_BYTES = 32 * MB
/** With the reserve laid in again it must not be nearly full at once. */
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
  // Laying the reserve in takes its time, and the first requests need not wait for it.
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

/** Of bytes that no file system can make smaller. */
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
