// The background jobs that move runs.

import type { Handlers } from '../../queue/job.ts'
import { ADVANCE_RUNS, CALL_WEBHOOK } from '../jobs.ts'
import { advanceRuns } from './advance.ts'
import { type CallContext, callWebhook } from './call.ts'
import type { RunsContext } from './context.ts'

/** An outage of an hour must not need somebody to release what was given up: about a day. */
const PATIENT = { maxAttempts: 100 }

export const runHandlers = (runs: RunsContext, calls: CallContext): Handlers => ({
  [ADVANCE_RUNS]: { run: advanceRuns(runs), ...PATIENT },
  [CALL_WEBHOOK]: { run: callWebhook(calls), ...PATIENT },
})
