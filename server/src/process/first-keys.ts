// The first start issues the first keys: they are printed once, and kept in a file that only the owner can read.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FirstOrganization } from '../apps/app.ts'
import { type Config, ConfigError } from '../settings/config.ts'
import { reasonOf } from '../storage/embedded/error.ts'

const FILE = 'first-keys.json'

export async function keepFirstKeys(dataDir: string, first: FirstOrganization) {
  const file = join(dataDir, FILE)
  const content = {
    organization_id: first.organizationId,
    organization_key: first.organizationKey,
    app_id: first.appId,
    app_key: first.appKey,
  }
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    // Created anew: an existing file could be readable by others, and would stay so.
    const unfinished = `${file}.new`
    await rm(unfinished, { force: true })
    await writeFile(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true })
    await rename(unfinished, file)
  } catch (error) {
    throw new ConfigError(`cannot keep the first keys in ${file}: ${reasonOf(error)}; check DATA_DIR`)
  }
}

/** Shows this server's own address to try, because PUBLIC_URL may not lead here yet. */
export function printFirstKeys(
  { publicUrl, port, dataDir }: Pick<Config, 'port' | 'publicUrl' | 'dataDir'>,
  address = `http://localhost:${port}`,
  first: FirstOrganization,
) {
  console.log(`
Welcome to Carillon. These are your first keys; they are shown once.

  address            ${publicUrl ?? address}
  organization id    ${first.organizationId}
  organization key   ${first.organizationKey}
  app id             ${first.appId}
  app key            ${first.appKey}

They are also in ${join(dataDir, FILE)}, readable by you alone.

  what to do next    ${address}
  every operation    ${address}/docs
  web push, tried    ${address}/demo

Try it:

  curl ${address}/apps/${first.appId}/users \\
    -H "Authorization: Key ${first.appKey}" -H "Content-Type: application/json" \\
    -d '{"identity":{"external_id":"you"},"subscriptions":[{"type":"Email","token":"you@example.com"}]}'
`)
}
