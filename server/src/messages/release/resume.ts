// Look again at what waits, before its time: sending goes on, or a provider has new credentials.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import { findAppsWithJobAcrossApps } from '../../queue/store.ts'
import { RESUME_DELIVERIES } from '../../sending/control.ts'
import { deleteMisconfigured } from '../deliver/provider-pause-store.ts'
import { findNextDue } from '../deliver/store.ts'
import { type Provider, providers, shardsOf } from '../delivery.ts'
import type { Engine } from '../engine/engine.ts'
import { DELIVER, deliverJobs } from '../jobs.ts'

type ResumeContext = Pick<Engine, 'db' | 'queue'>

async function resumeProviders({ db, queue }: ResumeContext, appId: AppId, which: readonly Provider[]) {
  await queue.enqueue(db, deliverJobs(appId, await findNextDue(db, appId, which.flatMap(shardsOf))))
}

export const resumeApp = (ctx: ResumeContext) => async (work: JobRun) => resumeProviders(ctx, work.job.appId, providers)

/** Where something waits, its line has a job; each of these apps then looks for itself. */
export const resumeAllApps =
  ({ db, queue }: ResumeContext) =>
  async () => {
    const waiting = await findAppsWithJobAcrossApps(db, DELIVER)
    await queue.enqueue(
      db,
      waiting.map(({ appId }) => ({ appId, name: RESUME_DELIVERIES, key: 'wake' })),
    )
  }

/** The app was changed. Nothing is asked of a provider that refused it, so nothing is lost where it was not its credentials. */
export async function resumeMisconfigured({ db, queue }: ResumeContext, appId: AppId): Promise<void> {
  await db.transaction(async (db) => {
    const freed = await deleteMisconfigured(db, appId)
    if (freed.length > 0)
      await resumeProviders(
        { db, queue },
        appId,
        freed.map(({ provider }) => provider),
      )
  })
}
