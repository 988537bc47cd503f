import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import type { AppId } from '../lib/ids.ts'
import type { JourneysContext } from './context.ts'
import { refreshWatches } from './entry/refresh-watches.ts'
import { clearJob } from './jobs.ts'
import { type JourneyId, journeyNotFound } from './journey.ts'
import { deleteJourneyRow } from './store.ts'

/** In any state, for good, with its versions. Its runs stop at once; their rows and counts are deleted in the background. */
export async function deleteJourney(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  by: RequestOrigin,
): Promise<void> {
  await ctx.db.transaction(async (db) => {
    const name = await deleteJourneyRow(db, appId, id)
    if (name === undefined) throw journeyNotFound()
    await refreshWatches(db, appId)
    await insertAuditEntries(
      db,
      appId,
      [
        {
          id: ctx.newId(),
          actor: actorOf(by),
          action: 'journey.delete',
          targetType: 'journey',
          targetId: id,
          detail: { name },
        },
      ],
      ctx.now(),
    )
    await ctx.queue.enqueue(db, [clearJob(appId, id)])
  })
}
