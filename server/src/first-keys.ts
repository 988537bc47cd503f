// The first start hands out the first keys: printed once, and kept in a file that only the owner can read.

import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FirstOrganization } from './apps/schema.ts'
import type { Config } from './config.ts'

const FILE = 'first-keys.json'

export async function keepFirstKeys(dataDir: string, first: FirstOrganization) {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, FILE)
  const content = {
    organization_id: first.organizationId,
    organization_key: first.organizationKey,
    app_id: first.appId,
    app_key: first.appKey,
  }
  await writeFile(file, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await chmod(file, 0o600)
}

export function printFirstKeys(config: Pick<Config, 'port' | 'publicUrl' | 'dataDir'>, first: FirstOrganization) {
  const address = config.publicUrl ?? `http://localhost:${config.port}`
  console.log(`
Welcome to Carillon. These are your first keys; they are shown once.

  address            ${address}
  organization id    ${first.organizationId}
  organization key   ${first.organizationKey}
  app id             ${first.appId}
  app key            ${first.appKey}

They are also in ${join(config.dataDir, FILE)}, readable by you alone. Try it:

  curl ${address}/apps/${first.appId}/users \\
    -H "Authorization: Key ${first.appKey}" -H "Content-Type: application/json" \\
    -d '{"identity":{"external_id":"you"},"subscriptions":[{"type":"Email","token":"you@example.com"}]}'
`)
}
