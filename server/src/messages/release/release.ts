// Releases deliveries after the settings that hold them have changed. They are decided about again.

import type { JobRun } from '../../queue/job.ts'
import { QUIET_HOURS_CHANGED } from '../../sending/control.ts'
import { providers, shardsOf } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { deliverJobs } from '../jobs.ts'
import { findThrottled, releaseQuiet, releaseThrottled } from './store.ts'

const RELEASE_LIMIT = 50_000

export const releaseDeliveries = (engine: Pick<Engine, 'db' | 'clock' | 'queue'>) => (work: JobRun) =>
  work.job.key === QUIET_HOURS_CHANGED ? releaseFromQuiet(engine, work) : releaseFromThrottle(engine, work)

async function releaseFromQuiet({ db, clock, queue }: Pick<Engine, 'db' | 'clock' | 'queue'>, work: JobRun) {
  const { appId } = work.job
  for (const shard of providers.flatMap(shardsOf))
    for (let count = RELEASE_LIMIT; count === RELEASE_LIMIT && !work.signal.aborted; )
      count = await db.transaction(async (db) => {
        if (!(await work.isStillHeld(db))) return 0
        const now = clock.now()
        const released = await releaseQuiet(db, appId, shard, now, RELEASE_LIMIT)
        if (released > 0) await queue.enqueue(db, deliverJobs(appId, [{ shard, dueAt: now }]))
        return released
      })
}

/** Releases all deliveries of a message at once: released ones get new send times, and must not be released again. */
async function releaseFromThrottle({ db, clock, queue }: Pick<Engine, 'db' | 'clock' | 'queue'>, work: JobRun) {
  const { appId } = work.job
  for (const { id, expandAt } of await findThrottled(db, appId, clock.now())) {
    if (work.signal.aborted) return
    await db.transaction(async (db) => {
      if (!(await work.isStillHeld(db))) return
      const now = clock.now()
      const shards = await releaseThrottled(db, appId, { id, expandAt }, now)
      await queue.enqueue(
        db,
        deliverJobs(
          appId,
          shards.map(({ shard }) => ({ shard, dueAt: now })),
        ),
      )
    })
  }
}
