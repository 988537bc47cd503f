// The processes of the PostgreSQL that a server has started for itself.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { postgresOf, until } from '../process/launch.ts'

export const firstProcess = async (dataDir: string) =>
  Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10)

export async function servingProcess(dataDir: string): Promise<number> {
  let found: number | undefined
  await until(async () => {
    for (const pid of await postgresOf(dataDir))
      if (/carillon carillon \[local\]/.test(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
        found = pid
    return found !== undefined
  }, 10_000)
  return found as number
}

/** One may end by itself between the look and the blow: the kill before it took the others along. */
export async function killOne(find: (dataDir: string) => Promise<number>, dataDir: string): Promise<void> {
  await until(async () => {
    const pid = await find(dataDir).catch(() => undefined)
    try {
      return pid !== undefined && process.kill(pid, 'SIGKILL')
    } catch {
      return false
    }
  }, 60_000)
}
