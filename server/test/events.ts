// Makers for tests about custom events.

import type { Clock } from '../src/lib/clock.ts'
import type { SendWebhook } from '../src/sending/send-notice.ts'
import type { TestApp } from './app.ts'
import { aWorker } from './worker.ts'

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
export const runJobs = (app: TestApp, clock: Clock, eventRetentionDays?: number, sendWebhook?: SendWebhook) =>
  aWorker(app, clock, {
    ...(eventRetentionDays !== undefined && { eventRetentionDays }),
    ...(sendWebhook && { sendWebhook }),
  }).runDue()
