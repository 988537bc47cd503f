// A worker beside the server of a test: every background job there is, with a sender and webhooks that do as they are told.

import { allHandlers, allSchedules, type JobsContext } from '../src/composition/jobs.ts'
import { createJourneysContext } from '../src/journeys/context.ts'
import { createRunsContext } from '../src/journeys/runs/context.ts'
import { createReadRunData, createRecordRunActions } from '../src/journeys/runs/ports.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { secretBox } from '../src/lib/secrets.ts'
import type { EmailPort } from '../src/messages/email/port.ts'
import type { DeliverySender } from '../src/messages/engine/types.ts'
import { createWorker, type WorkerOptions } from '../src/queue/work.ts'
import type { SendWebhook } from '../src/sending/send-notice.ts'
import { createMerger } from '../src/storage/merge.ts'
import { createUsersContext } from '../src/users/context.ts'
import type { TestApp } from './app.ts'
import { anEmailContext } from './email.ts'
import { anEmailPort, anEngine, fakeSender, theRenderer } from './engine.ts'

export type WorkerParts = {
  sender?: DeliverySender
  email?: EmailPort
  sendWebhook?: SendWebhook
  eventRetentionDays?: number
  options?: Partial<WorkerOptions>
}

export function aWorker(app: Pick<TestApp, 'db'>, clock: Clock, parts: WorkerParts = {}) {
  const { sender = fakeSender(), email = anEmailPort(), eventRetentionDays = 400, options } = parts
  const sendWebhook = parts.sendWebhook ?? (() => Promise.reject(new Error('nobody is told of events')))
  const base = { db: app.db, clock, newId, merger: createMerger({ slots: 1 }) }
  const log = createLog('error')
  const secrets = secretBox('the secret key of the tests')
  const renderer = theRenderer()
  const engine = {
    ...anEngine({ db: app.db, clock, sender, email }),
    recordRunActions: createRecordRunActions(base),
    readRunData: createReadRunData(app.db),
  }
  const context: JobsContext = {
    ...base,
    change: createUsersContext(base).change,
    secrets,
    sendWebhook,
    sendEmail: () => Promise.reject(new Error('nobody is written to')),
    engine,
    email: anEmailContext({ db: app.db, clock }),
    journeys: createJourneysContext({ ...base, renderer, secrets, sendWebhook, minWaitSeconds: 60 }),
    runs: createRunsContext({ ...base, log, renderer, engine }),
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
