// Every route as it is declared, for those who describe or ask about routes without calling them.

import { createEmailContext } from '../email/context.ts'
import { createEventsContext } from '../events/context.ts'
import { createExportsContext } from '../exports/context.ts'
import { createFeedbackContext } from '../feedback/context.ts'
import type { Route } from '../http/route.ts'
import { kitRoutes } from '../http/routes.ts'
import { createInAppContext } from '../in-app/context.ts'
import { createJourneysContext } from '../journeys/context.ts'
import { createDryRunContext } from '../journeys/dry-run/simulate.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { secretBox } from '../lib/secrets.ts'
import { createActivitiesContext } from '../messages/activities/context.ts'
import { createMessagesContext } from '../messages/context.ts'
import { createOutcomesContext } from '../outcomes/context.ts'
import { createReportsContext } from '../reports/context.ts'
import { createSegmentsContext } from '../segments/context.ts'
import { createSendingContext } from '../sending/context.ts'
import type { Db } from '../storage/db.ts'
import { createMerger } from '../storage/merge.ts'
import { createTemplatesContext } from '../templates/context.ts'
import { createRenderer } from '../templates/render/renderer.ts'
import { createUsersContext } from '../users/context.ts'
import { mailParts } from './inbound-email.ts'
import { readTwilio } from './read-twilio-callback.ts'
import { allRoutes } from './routes.ts'

const refuse = () => Promise.reject(new Error('no database here'))
const noDatabase: Db = { query: refuse, transaction: refuse }

export function declaredRoutes(): { domains: Route[]; kit: Route[] } {
  const sendWebhook = () => Promise.reject(new Error('nothing is sent from here'))
  const isUsed = async () => false
  const parts = { db: noDatabase, clock: virtualClock(), merger: createMerger({ slots: 1 }), newId }
  const users = createUsersContext(parts)
  const segments = createSegmentsContext({ ...parts, reader: users.reader, counting: { use: refuse }, isUsed })
  const secrets = secretBox('nothing is ever sealed')
  const renderer = createRenderer()
  const unasked = () => Promise.reject(new Error('nobody is asked from here'))
  const email = createEmailContext({
    ...parts,
    secrets,
    resolver: { txt: unasked, mx: unasked, cname: unasked, addresses: unasked },
    mail: { way: undefined, helo: 'localhost.localdomain' },
    publicUrl: undefined,
    port: 0,
    mayReach: () => false,
  })
  const messages = createMessagesContext({ ...parts, users, segments, renderer, mayAttach: false })
  const domains = allRoutes({
    apps: {
      ...parts,
      secrets,
      publicUrl: undefined,
      usage: { flush: async () => {} },
      countPlayers: async () => new Map(),
      findAppsWithAddresses: async () => new Set(),
    },
    users,
    events: createEventsContext({ ...parts, reader: users.reader, retentionDays: 400 }),
    segments,
    outcomes: createOutcomesContext(parts),
    reports: createReportsContext({ ...parts, segments, reader: users.reader }),
    exports: createExportsContext({ ...parts, segments, baseUrl: () => '' }),
    templates: createTemplatesContext({ ...parts, renderer, users: users.reader, isUsed, mayAttach: false }),
    messages,
    activities: createActivitiesContext({ ...parts, reader: users.reader, messages, note: async () => {} }),
    sending: createSendingContext({ ...parts, secrets }),
    email,
    inApp: createInAppContext({ ...parts, renderer, users: users.reader, isUsed }),
    feedback: createFeedbackContext({
      ...parts,
      secrets,
      change: users.change,
      readTwilio,
      publicUrl: undefined,
      sendWebhook,
      mail: mailParts({ secretKey: 'nothing is ever signed', outbound: { request: sendWebhook }, renderer }),
    }),
    journeys: createJourneysContext({ ...parts, renderer, secrets, sendWebhook, minWaitSeconds: 60 }),
    dryRuns: createDryRunContext({ ...parts, connection: {} }),
    sdk: { ...parts, secrets },
  })
  const kit = kitRoutes({
    routes: domains,
    metrics: { text: async () => '', contentType: 'text/plain' },
    isReady: async () => true,
  })
  return { domains, kit }
}
