// Runs at send nodes wait while the app is disabled: until that ends by itself, or until somebody ends it.

import type { AppId } from '../../lib/ids.ts'
import { readSending, type Sending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { advanceJobs } from '../jobs.ts'
import { templateChannelOf } from '../nodes/kinds.ts'
import { type CompiledJourney, compileJourney } from '../runs/compile-journey.ts'
import type { RunsContext } from '../runs/context.ts'
import { makeDue } from '../runs/lifecycle-store.ts'
import { findLiveJourneys, lockJourney } from '../store.ts'

/** How soon they look again where it cannot be told when it ends, or where it should have. */
const SOON_MS = 60_000

/** Whether and how the app may send; undefined for journeys that do not. */
export const findSending = async (
  db: Db,
  appId: AppId,
  { nodes }: Pick<CompiledJourney, 'nodes'>,
  now: Date,
): Promise<Sending | undefined> =>
  nodes.some(({ kind }) => templateChannelOf(kind)) ? readSending(db, appId, now) : undefined

/** Until when the app may not send, as far as can be told; undefined when it may. */
export function sendsHeldUntil({ hold }: Sending, now: Date): Date | undefined {
  if (hold?.reason !== 'disabled') return undefined
  return hold.until && hold.until > now ? hold.until : new Date(now.getTime() + SOON_MS)
}

/** The app may send again, or may do so sooner: who waits for it is looked at. Under the journey's lock nobody moves them meanwhile. */
export async function wakeHeldRuns({ db, now, queue }: RunsContext, appId: AppId): Promise<void> {
  for (const journey of await findLiveJourneys(db, appId)) {
    const { nodes } = compileJourney(journey)
    const senders = nodes.filter(({ kind }) => templateChannelOf(kind)).map(({ id }) => ({ nodeId: id, seconds: null }))
    if (senders.length === 0) continue
    await db.transaction(async (db) => {
      const current = await lockJourney(db, appId, journey.id)
      if (current?.state !== 'active') return
      await makeDue(db, appId, journey.id, senders, now())
      await queue.enqueue(db, advanceJobs(appId, { id: journey.id, audience: current.document.audience }))
    })
  }
}
