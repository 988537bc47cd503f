import type { JobHandlers } from '../../queue/job.ts'
import { CHANGE_FEED_JOB } from '../../users/change-feed/change-feed.ts'
import { RETRIED_FOR_A_DAY, SWEEP_JOURNEY } from '../jobs.ts'
import type { EntryContext } from './context.ts'
import { handleUserChanges } from './handle-user-changes.ts'
import { sweepHandler } from './sweep.ts'

export const entryHandlers = (ctx: EntryContext): JobHandlers => ({
  [CHANGE_FEED_JOB]: { run: handleUserChanges(ctx), ...RETRIED_FOR_A_DAY },
  [SWEEP_JOURNEY]: { ...sweepHandler(ctx), ...RETRIED_FOR_A_DAY },
})
