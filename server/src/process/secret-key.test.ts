import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConfigError } from '../settings/config.ts'
import { ensureSecretKey, secretKeyFile } from './secret-key.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'carillon-secret-'))
})
afterAll(() => rm(home, { recursive: true }))

const ensure = (dataDir: string, secretKey?: string) => ensureSecretKey({ dataDir, secretKey })

test('a key of the settings is taken, and nothing is written', async () => {
  const dataDir = join(home, 'given')
  expect(await ensure(dataDir, 'a key of my own making')).toBe('a key of my own making')
  await expect(stat(dataDir)).rejects.toThrow('ENOENT')
})

test('without one it is made, and found again, in a file that only its owner can read', async () => {
  const dataDir = join(home, 'made')
  const key = await ensure(dataDir)
  expect(Buffer.from(key, 'base64')).toHaveLength(32)
  expect(await ensure(dataDir)).toBe(key)
  expect((await stat(secretKeyFile(dataDir))).mode & 0o777).toBe(0o600)
  expect(await readdir(dataDir)).toEqual(['secret-key'])
})

test('processes that start at once get the same', async () => {
  const dataDir = join(home, 'shared')
  const module = new URL('./secret-key.ts', import.meta.url)
  const script = `const { ensureSecretKey } = await import(${JSON.stringify(module)})
    const keys = await Promise.all(Array.from({ length: 20 }, () => ensureSecretKey({ dataDir: ${JSON.stringify(dataDir)} })))
    console.log([...new Set(keys)].join())`
  const runs = await Promise.all(
    [1, 2].map(() => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])),
  )
  const kept = await readFile(secretKeyFile(dataDir), 'utf8')
  expect(runs.map(({ stdout }) => stdout)).toEqual([kept, kept])
  expect(await readdir(dataDir)).toEqual(['secret-key'])
})

test('an emptied file is not replaced: what was encrypted with its key would be lost', async () => {
  const dataDir = join(home, 'emptied')
  await ensure(dataDir)
  await writeFile(secretKeyFile(dataDir), '')
  await expect(ensure(dataDir)).rejects.toThrow(/holds no key; restore it from a backup/)
})

test('a folder that cannot be made is one line', async () => {
  await writeFile(join(home, 'file'), '')
  const refused = ensure(join(home, 'file', 'data'))
  await expect(refused).rejects.toThrow(ConfigError)
  await expect(refused).rejects.toThrow(/^cannot keep the secret key in .+secret-key: a part of the path is a file/)
})
