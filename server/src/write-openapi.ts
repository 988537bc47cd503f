// Writes server/openapi.json from the routes; with --check it only says whether the file is what the routes say.

import { readFile, writeFile } from 'node:fs/promises'
import { createEventsContext } from './events/context.ts'
import { describeApi } from './http/openapi.ts'
import { kitRoutes } from './http/routes.ts'
import { virtualClock } from './lib/clock.ts'
import { newId } from './lib/ids.ts'
import { allRoutes } from './routes.ts'
import { createSegmentsContext } from './segments/context.ts'
import type { Db } from './storage/db.ts'
import { createMerger } from './storage/merge.ts'
import { createUsersContext } from './users/context.ts'

const FILE = new URL('../openapi.json', import.meta.url)

/** Routes are described without being called, so nothing here is ever asked. */
const noDatabase: Db = {
  query: () => Promise.reject(new Error('no database here')),
  transaction: () => Promise.reject(new Error('no database here')),
}

const parts = { db: noDatabase, clock: virtualClock(), merger: createMerger({ slots: 1 }), newId }
const users = createUsersContext(parts)
const routes = allRoutes({
  users,
  events: createEventsContext({ ...parts, reader: users.reader, retentionDays: 400 }),
  segments: createSegmentsContext({ ...parts, reader: users.reader, countingDb: noDatabase }),
})
const own = kitRoutes({
  routes,
  metrics: { text: async () => '', contentType: 'text/plain' },
  isReady: async () => true,
})
const text = `${JSON.stringify(describeApi([...routes, ...own]), null, 2)}\n`

if (process.argv.includes('--check')) {
  const present = await readFile(FILE, 'utf8').catch(() => '')
  if (present !== text) {
    console.error('server/openapi.json is not what the routes say; run "npm run openapi"')
    process.exitCode = 1
  }
} else await writeFile(FILE, text)
