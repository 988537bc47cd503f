// Makers for tests about custom events.

import { allHandlers, allSchedules } from '../src/jobs.ts'
import { createJourneysContext } from '../src/journeys/context.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { secretBox } from '../src/lib/secrets.ts'
import { createWorker } from '../src/queue/work.ts'
import type { SendWebhook } from '../src/sending/notify.ts'
import { createMerger } from '../src/storage/merge.ts'
import { createUsersContext } from '../src/users/context.ts'
import type { TestApp } from './app.ts'
import { anEmailContext } from './email.ts'
import { anEngine, fakeSender } from './engine.ts'

export type Sent = { name?: string } & Record<string, unknown>
export type Seen = { id: string; name: string; timestamp: string; received_at: string; properties: object }

/** Events without a name are called "bell rung". */
export const record = (app: TestApp, events: Sent[], more: object = {}) =>
  app.app('/custom_events', { body: { events: events.map((event) => ({ name: 'bell rung', ...event })), ...more } })

/** What the user did, newest first, as far as one page goes. */
export const history = async (app: TestApp, user: { path: string }, query = 'limit=300'): Promise<Seen[]> =>
  (await app.app(`${user.path}/custom_events?${query}`)).body.events

export const ACCEPTED = { status: 202, body: {} }

/** Does what is due in the background, as a worker beside the server would. */
export const runJobs = (
  app: TestApp,
  clock: Clock,
  eventRetentionDays = 400,
  sendWebhook: SendWebhook = () => Promise.reject(new Error('nobody is told of events')),
) => {
  const users = createUsersContext({ db: app.db, clock, newId, merger: createMerger({ slots: 1 }) })
  const secrets = secretBox('the secret key of the tests')
  const engine = anEngine({ db: app.db, clock, sender: fakeSender() })
  const { change } = users
  const email = anEmailContext({ db: app.db, clock })
  const sendMail = () => Promise.reject(new Error('nobody is written to'))
  const retention = { eventRetentionDays, deliveryRetentionDays: 400 }
  const journeys = createJourneysContext({
    db: app.db,
    clock,
    newId,
    renderer: { check: async () => {} },
    secrets,
    sendWebhook,
    minWaitSeconds: 60,
  })
  const context = {
    db: app.db,
    clock,
    newId,
    change,
    secrets,
    sendWebhook,
    sendMail,
    engine,
    email,
    journeys,
    ...retention,
  }
  const worker = createWorker({
    ...context,
    log: createLog('error'),
    handlers: allHandlers(context),
    schedules: allSchedules(context),
  })
  return worker.runDue()
}
