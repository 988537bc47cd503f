// The background jobs that move runs.

import type { Handlers } from '../../queue/job.ts'
import { ADVANCE_RUNS, CALL_WEBHOOK, PATIENT } from '../jobs.ts'
import { type CallContext, callWebhook } from '../webhooks/call.ts'
import { advanceRuns } from './advance.ts'
import type { RunsContext } from './context.ts'

export const runHandlers = (runs: RunsContext, calls: CallContext): Handlers => ({
  [ADVANCE_RUNS]: { run: advanceRuns(runs), ...PATIENT },
  [CALL_WEBHOOK]: { run: callWebhook(calls), waitsFor: (webhookId) => webhookId, ...PATIENT },
})
