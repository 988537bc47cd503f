// Tells a data folder from a copy of it. A file in the folder is remembered by what it says and by when it was made, which no
// copy can take along: whoever copies or restores the folder makes a new file.

import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { newId } from '../../lib/ids.ts'

/** Moving the folder within its file system leaves it as it is. */
export async function openEpoch(dataDir: string): Promise<string> {
  const path = join(dataDir, 'epoch')
  await makeOnce(path)
  const { birthtimeNs, ino } = await stat(path, { bigint: true })
  const token = (await readFile(path, 'utf8')).trim()
  // Some file systems do not know when a file was made; numbers of files are given anew by some that are mounted again.
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
