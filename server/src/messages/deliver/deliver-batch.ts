// A slice of deliveries on its way: committed as sending before anybody outside is asked, and what came of it written down after.
// Whoever dies in between leaves deliveries of which nobody knows; they are never sent again by themselves.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { whenDatabaseIsBack } from '../../queue/settle.ts'
import type { SendingHold } from '../../sending/hold.ts'
import { suppressBounced } from '../email/suppress-bounced.ts'
import type { Engine } from '../engine/engine.ts'
import { quarantineGone } from '../push/quarantine.ts'
import type { Attempt } from './batch.ts'
import type { ComposedDelivery } from './compose.ts'
import type { PauseRequest } from './judge-outcome.ts'
import { markSending } from './mark-sending.ts'
import { recordOutcomes } from './record-outcomes.ts'
import { unsubscribeGone } from './unsubscribe-gone.ts'

/** `lost`: the line is somebody else's now. `held`: why the line is to be left alone for a while. */
export type BatchResult = { isLost?: true; hold?: SendingHold | PauseRequest | undefined }

export async function deliverBatch(
  engine: Engine,
  attempt: Attempt,
  slice: readonly ComposedDelivery[],
): Promise<BatchResult> {
  const { db, clock } = engine
  const isOver = () => attempt.work.signal.aborted
  const marked = await db.transaction((db) => markSending(db, attempt, slice, clock.now()))
  if (!marked) return { isLost: true }
  const { sent, hold } = marked
  if (sent.length === 0) return { hold: hold }
  const answers = await send(engine, attempt, sent)
  const outcomes = await whenDatabaseIsBack(
    () => quarantineGone(db, attempt.appId, attempt.shard.provider, answers),
    isOver,
  )
  const pause = await whenDatabaseIsBack(
    () => db.transaction((db) => recordOutcomes(engine, db, attempt, marked, outcomes, clock.now())),
    isOver,
  )
  await attempt.work.recordProgress(db)
  await unsubscribeGone(engine, attempt.appId, sent, outcomes)
  if (attempt.shard.provider === 'email') await suppressBounced(engine, attempt.appId, sent, outcomes)
  return { hold: hold ?? pause }
}

async function send(
  { sender, stats, log }: Engine,
  { appId, shard: line }: Attempt,
  sent: readonly ComposedDelivery[],
) {
  const parcels = sent.map(({ outgoing: parcel }) => parcel)
  let outcomes: ChannelOutcome[]
  try {
    outcomes = await sender.send(appId, line, parcels)
  } catch (error) {
    log.error({ appId, provider: line.provider, reason: (error as Error).message }, 'a sender failed')
    outcomes = parcels.map(() => ({ kind: 'unknown', reason: 'fault in the server' }))
  }
  for (const { kind } of outcomes) stats.count(line.provider, kind)
  return outcomes
}
