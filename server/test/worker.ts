// A worker beside the server of a test: every background job there is, with a sender and webhooks that do as they are told.

import { allHandlers, allSchedules, type JobsContext } from '../src/jobs.ts'
import { createJourneysContext } from '../src/journeys/context.ts'
import { createRunsContext } from '../src/journeys/runs/context.ts'
import { createNoteActions, createReadRunData } from '../src/journeys/runs/ports.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { secretBox } from '../src/lib/secrets.ts'
import type { Sender } from '../src/messages/engine/sender.ts'
import { createWorker, type WorkerOptions } from '../src/queue/work.ts'
import type { SendWebhook } from '../src/sending/notify.ts'
import { createMerger } from '../src/storage/merge.ts'
import { createUsersContext } from '../src/users/context.ts'
import type { TestApp } from './app.ts'
import { anEmailContext } from './email.ts'
import { anEngine, fakeSender, theRenderer } from './engine.ts'

export type WorkerParts = {
  sender?: Sender
  sendWebhook?: SendWebhook
  eventRetentionDays?: number
  options?: Partial<WorkerOptions>
}

export function aWorker(app: Pick<TestApp, 'db'>, clock: Clock, parts: WorkerParts = {}) {
  const { sender = fakeSender(), eventRetentionDays = 400, options } = parts
  const sendWebhook = parts.sendWebhook ?? (() => Promise.reject(new Error('nobody is told of events')))
  const base = { db: app.db, clock, newId, merger: createMerger({ slots: 1 }) }
  const log = createLog('error')
  const secrets = secretBox('the secret key of the tests')
  const renderer = theRenderer()
  const context: JobsContext = {
    ...base,
    change: createUsersContext(base).change,
    secrets,
    sendWebhook,
    sendMail: () => Promise.reject(new Error('nobody is written to')),
    engine: {
      ...anEngine({ db: app.db, clock, sender }),
      noteActions: createNoteActions(base),
      readRunData: createReadRunData(app.db),
    },
    email: anEmailContext({ db: app.db, clock }),
    journeys: createJourneysContext({ ...base, renderer, secrets, sendWebhook, minWaitSeconds: 60 }),
    runs: createRunsContext({ ...base, log, renderer }),
    eventRetentionDays,
    deliveryRetentionDays: 400,
  }
  return createWorker({
    ...context,
    log,
    handlers: allHandlers(context),
    schedules: allSchedules(context),
    ...options,
  })
}
