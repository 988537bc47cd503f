// Runs wait at send nodes while the app is disabled, until the hold expires or an operator lifts it.

import type { AppId } from '../../lib/ids.ts'
import { readSending, type Sending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { advanceJobs } from '../jobs.ts'
import { templateChannelOf } from '../nodes/kinds.ts'
import { type CompiledJourney, compileJourney } from '../runs/compile-journey.ts'
import type { RunsContext } from '../runs/context.ts'
import { makeDue } from '../runs/lifecycle-store.ts'
import { findLiveJourneys, lockJourney } from '../store.ts'

/** The pause before runs check again a hold without a known end. */
const RECHECK_MS = 60_000

/** Whether and how the app may send; undefined for journeys that send nothing. */
export const findSending = async (
  db: Db,
  appId: AppId,
  { nodes }: Pick<CompiledJourney, 'nodes'>,
  now: Date,
): Promise<Sending | undefined> =>
  nodes.some(({ kind }) => templateChannelOf(kind)) ? readSending(db, appId, now) : undefined

/** Until when the app may not send, as far as is known; undefined when it may. */
export function sendsHeldUntil({ hold }: Sending, now: Date): Date | undefined {
  if (hold?.reason !== 'disabled') return undefined
  return hold.until && hold.until > now ? hold.until : new Date(now.getTime() + RECHECK_MS)
}

/** Makes waiting runs due when the app may send again, or sooner than before. Under the journey's lock nobody advances them meanwhile. */
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
