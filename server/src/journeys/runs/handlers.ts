// The handlers of the jobs that advance runs.

import type { JobHandlers } from '../../queue/job.ts'
import { ADVANCE_RUNS, DELIVER_CALLS, RETRIED_FOR_A_DAY } from '../jobs.ts'
import { deliverCalls, type WebhookCallsContext } from '../webhooks/call.ts'
import { advanceRuns } from './advance.ts'
import type { RunsContext } from './context.ts'

export const runHandlers = (runs: RunsContext, calls: WebhookCallsContext): JobHandlers => ({
  [ADVANCE_RUNS]: { run: advanceRuns(runs), ...RETRIED_FOR_A_DAY },
  [DELIVER_CALLS]: { run: deliverCalls(calls), waitsFor: (webhookId) => webhookId, ...RETRIED_FOR_A_DAY },
})
