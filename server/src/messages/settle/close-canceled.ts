// Closes the pending deliveries of a canceled message in the background. Even before they are closed, they are not sent
// any more.

import type { JobRun } from '../../queue/job.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { CLOSE_COUNT_PART } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { closeJob } from '../jobs.ts'
import { closePending, hasPending } from './close-store.ts'
import { findCanceled } from './store.ts'

const CLOSE_LIMIT = 5_000
const RETRY_PAUSE_MS = 1_000

export const closeCanceled =
  ({ db, clock, queue }: Pick<Engine, 'db' | 'clock' | 'queue'>) =>
  async (work: JobRun) => {
    const { appId, key: id } = work.job
    const message = await findCanceled(db, appId, id)
    if (!message?.expandAt) return
    const { expandAt } = message
    for (let count = CLOSE_LIMIT; count === CLOSE_LIMIT && !work.signal.aborted; )
      count = await db.transaction(async (db) => {
        if (!(await work.isStillHeld(db))) return 0
        const closed = await closePending(db, appId, id, expandAt, clock.now(), CLOSE_LIMIT)
        await changeCounts(db, appId, CLOSE_COUNT_PART, transitionsFrom({ state: 'pending' }, closed))
        await work.recordProgress(db)
        return closed.length
      })
    if (await hasPending(db, appId, id, expandAt))
      await queue.enqueue(db, [{ ...closeJob(appId, id), runAt: new Date(clock.now().getTime() + RETRY_PAUSE_MS) }])
  }
