// The key that encrypts provider credentials: from the settings, or generated once and kept beside the data.

import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { newId } from '../lib/ids.ts'
import { newSecretKey } from '../lib/secrets.ts'
import { type Config, ConfigError } from '../settings/config.ts'
import { reasonOf } from '../storage/embedded/error.ts'

const SHORTEST = 16

export const secretKeyFile = (dataDir: string) => join(dataDir, 'secret-key')

type Settings = Pick<Config, 'secretKey' | 'dataDir'>

/** Undefined when it is neither set nor generated yet. */
export async function findSecretKey({ secretKey, dataDir }: Settings): Promise<string | undefined> {
  if (secretKey !== undefined) return secretKey
  const file = secretKeyFile(dataDir)
  try {
    return await readKey(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw refusal(file, error)
    return undefined
  }
}

export async function ensureSecretKey(settings: Settings): Promise<string> {
  const found = await findSecretKey(settings)
  if (found !== undefined) return found
  const { dataDir } = settings
  const file = secretKeyFile(dataDir)
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await keepKey(dataDir, file, newSecretKey())
    // When several processes start at once, one of them creates the file and all read it.
    return await readKey(file)
  } catch (error) {
    throw refusal(file, error)
  }
}

async function readKey(file: string): Promise<string> {
  const key = (await readFile(file, 'utf8')).trim()
  if (key.length < SHORTEST)
    throw new ConfigError(
      `the file ${file} holds no key; restore it from a backup, since what was encrypted with it cannot be read without`,
    )
  return key
}

/**
 * The file gets its name when its content is complete and synced to disk. Linking fails if the name exists, so the key
 * is never replaced.
 */
async function keepKey(dataDir: string, file: string, key: string) {
  const unfinished = join(dataDir, `secret-key.new-${newId()}`)
  try {
    await writeSynced(unfinished, `${key}\n`)
    await link(unfinished, file)
    await sync(dataDir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(unfinished, { force: true })
  }
}

async function writeSynced(path: string, content: string) {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function sync(folder: string) {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const refusal = (file: string, error: unknown) =>
  error instanceof ConfigError
    ? error
    : new ConfigError(
        `cannot keep the secret key in ${file}: ${reasonOf(error)}; make the folder writable, or set SECRET_KEY`,
      )
