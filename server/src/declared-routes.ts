// Every route as it is declared, for those who describe or ask about routes without calling them.

import { createEventsContext } from './events/context.ts'
import type { Route } from './http/route.ts'
import { kitRoutes } from './http/routes.ts'
import { virtualClock } from './lib/clock.ts'
import { newId } from './lib/ids.ts'
import { secretBox } from './lib/secrets.ts'
import { allRoutes } from './routes.ts'
import { createSegmentsContext } from './segments/context.ts'
import type { Db } from './storage/db.ts'
import { createMerger } from './storage/merge.ts'
import { createTemplatesContext } from './templates/context.ts'
import { createRenderer } from './templates/render/renderer.ts'
import { createUsersContext } from './users/context.ts'

const noDatabase: Db = {
  query: () => Promise.reject(new Error('no database here')),
  transaction: () => Promise.reject(new Error('no database here')),
}

export function declaredRoutes(): { domains: Route[]; kit: Route[] } {
  const parts = { db: noDatabase, clock: virtualClock(), merger: createMerger({ slots: 1 }), newId }
  const users = createUsersContext(parts)
  const domains = allRoutes({
    apps: {
      ...parts,
      secrets: secretBox('nothing is ever sealed'),
      usage: { flush: async () => {} },
      countPlayers: async () => new Map(),
    },
    users,
    events: createEventsContext({ ...parts, reader: users.reader, retentionDays: 400 }),
    segments: createSegmentsContext({ ...parts, reader: users.reader, countingDb: noDatabase }),
    templates: createTemplatesContext({ ...parts, renderer: createRenderer(), users: users.reader }),
  })
  const kit = kitRoutes({
    routes: domains,
    metrics: { text: async () => '', contentType: 'text/plain' },
    isReady: async () => true,
  })
  return { domains, kit }
}
