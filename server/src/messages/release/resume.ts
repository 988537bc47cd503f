// Look again at what waits, before its time: sending goes on, or a provider has new credentials.

import type { AppId } from '../../lib/ids.ts'
import type { Work } from '../../queue/job.ts'
import { findAppsWithJobAcrossApps } from '../../queue/store.ts'
import { WAKE } from '../../sending/control.ts'
import { deleteMisconfigured } from '../deliver/provider-pause-store.ts'
import { findNextDue } from '../deliver/store.ts'
import { linesOf, type Provider, providers } from '../delivery.ts'
import type { Engine } from '../engine/engine.ts'
import { DELIVER, deliverJobs } from '../jobs.ts'

type WakeContext = Pick<Engine, 'db' | 'queue'>

async function wakeProviders({ db, queue }: WakeContext, appId: AppId, which: readonly Provider[]) {
  await queue.enqueue(db, deliverJobs(appId, await findNextDue(db, appId, which.flatMap(linesOf))))
}

export const wakeApp = (ctx: WakeContext) => async (work: Work) => wakeProviders(ctx, work.job.appId, providers)

/** Where something waits, its line has a job; each of these apps then looks for itself. */
export const wakeAllApps =
  ({ db, queue }: WakeContext) =>
  async () => {
    const waiting = await findAppsWithJobAcrossApps(db, DELIVER)
    await queue.enqueue(
      db,
      waiting.map(({ appId }) => ({ appId, name: WAKE, key: 'wake' })),
    )
  }

/** The app was changed. Nothing is asked of a provider that refused it, so nothing is lost where it was not its credentials. */
export async function noteNewCredentials({ db, queue }: WakeContext, appId: AppId): Promise<void> {
  await db.transaction(async (db) => {
    const freed = await deleteMisconfigured(db, appId)
    if (freed.length > 0)
      await wakeProviders(
        { db, queue },
        appId,
        freed.map(({ provider }) => provider),
      )
  })
}
