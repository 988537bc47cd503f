import type { Handlers } from '../../queue/job.ts'
import { NEWS } from '../../users/change-feed/change-feed.ts'
import { PATIENT, SWEEP_JOURNEY } from '../jobs.ts'
import type { EntryContext } from './context.ts'
import { reactToNews } from './handle-user-changes.ts'
import { sweepHandler } from './sweep.ts'

export const entryHandlers = (ctx: EntryContext): Handlers => ({
  [NEWS]: { run: reactToNews(ctx), ...PATIENT },
  [SWEEP_JOURNEY]: { ...sweepHandler(ctx), ...PATIENT },
})
