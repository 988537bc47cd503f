// Tells a data folder from a copy of it. A file in the folder is identified by its content and by its creation time,
// which no copy preserves: copying or restoring the folder creates a new file.

import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { newId } from '../../lib/ids.ts'

/** Moving the folder within its file system does not change the epoch. */
export async function openEpoch(dataDir: string): Promise<string> {
  const path = join(dataDir, 'epoch')
  await makeOnce(path)
  const { birthtimeNs, ino } = await stat(path, { bigint: true })
  const token = (await readFile(path, 'utf8')).trim()
  // Some file systems record no creation time, so the inode is used there; some assign new inodes when they are
  // remounted.
  return `${token} ${birthtimeNs > 0n ? `made ${birthtimeNs}` : `file ${ino}`}`
}

async function makeOnce(path: string) {
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(`${newId()}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
