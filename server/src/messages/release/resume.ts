// Runs shards ahead of schedule, because sending was resumed or a provider has new credentials.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { findAppsWithJobAcrossApps } from '../../queue/store.ts'
import { RESUME_DELIVERIES } from '../../sending/control.ts'
import { deleteMisconfigured } from '../deliver/provider-pause-store.ts'
import { findNextDue } from '../deliver/store.ts'
import { type Provider, providers, shardsOf } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { DELIVER, deliverJobs } from '../jobs.ts'

type ResumeContext = Pick<Engine, 'db' | 'queue'>

async function resumeProviders({ db, queue }: ResumeContext, appId: AppId, which: readonly Provider[]) {
  await queue.enqueue(db, deliverJobs(appId, await findNextDue(db, appId, which.flatMap(shardsOf))))
}

export const resumeApp = (ctx: ResumeContext) => async (work: JobRun) => resumeProviders(ctx, work.job.appId, providers)

/** Every app with pending deliveries has a job for their shard, so the jobs tell which apps to resume. */
export const resumeAllApps =
  ({ db, queue }: ResumeContext) =>
  async () => {
    const waiting = await findAppsWithJobAcrossApps(db, DELIVER)
    await queue.enqueue(
      db,
      waiting.map(({ appId }) => ({ appId, name: RESUME_DELIVERIES, key: 'wake' })),
    )
  }

/**
 * Called when the app changed. If its credentials did not change, the provider refuses them once more and is paused
 * again.
 */
export async function resumeMisconfigured({ db, queue }: ResumeContext, appId: AppId): Promise<void> {
  await db.transaction(async (db) => {
    const ended = await deleteMisconfigured(db, appId)
    if (ended.length > 0)
      await resumeProviders(
        { db, queue },
        appId,
        ended.map(({ provider }) => provider),
      )
  })
}
