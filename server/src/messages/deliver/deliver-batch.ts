// A slice of deliveries on its way: committed as sending before anybody outside is asked, and what came of it written down after.
// Whoever dies in between leaves deliveries of which nobody knows; they are never sent again by themselves.

import type { Outcome } from '../../channels/channel.ts'
import { whenDatabaseIsBack } from '../../queue/settle.ts'
import type { Hold } from '../../sending/hold.ts'
import { suppressBounced } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import { distrust } from '../push/quarantine.ts'
import type { Attempt } from './batch.ts'
import type { Composed } from './compose.ts'
import type { Pause } from './judge-outcome.ts'
import { markSlice } from './mark-sending.ts'
import { recordOutcomes } from './record-outcomes.ts'
import { dropGone } from './unsubscribe-gone.ts'

/** `lost`: the line is somebody else's now. `held`: why the line is to be left alone for a while. */
export type SliceResult = { lost?: true; held?: Hold | Pause | undefined }

export async function deliverSlice(engine: Engine, attempt: Attempt, slice: readonly Composed[]): Promise<SliceResult> {
  const { db, clock } = engine
  const isOver = () => attempt.work.signal.aborted
  const marked = await db.transaction((db) => markSlice(db, attempt, slice, clock.now()))
  if (!marked) return { lost: true }
  const { sent, hold } = marked
  if (sent.length === 0) return { held: hold }
  const answers = await send(engine, attempt, sent)
  const outcomes = await whenDatabaseIsBack(() => distrust(db, attempt.appId, attempt.line.provider, answers), isOver)
  const pause = await whenDatabaseIsBack(
    () => db.transaction((db) => recordOutcomes(engine, db, attempt, marked, outcomes, clock.now())),
    isOver,
  )
  await attempt.work.noteProgress(db)
  await dropGone(engine, attempt.appId, sent, outcomes)
  if (attempt.line.provider === 'email') await suppressBounced(engine, attempt.appId, sent, outcomes)
  return { held: hold ?? pause }
}

async function send({ sender, stats, log }: Engine, { appId, line }: Attempt, sent: readonly Composed[]) {
  const parcels = sent.map(({ parcel }) => parcel)
  let outcomes: Outcome[]
  try {
    outcomes = await sender.send(appId, line, parcels)
  } catch (error) {
    log.error({ appId, provider: line.provider, reason: (error as Error).message }, 'a sender failed')
    outcomes = parcels.map(() => ({ kind: 'unknown', reason: 'fault in the server' }))
  }
  for (const { kind } of outcomes) stats.count(line.provider, kind)
  return outcomes
}
