// Sends one batch. It is committed as being sent before the provider is called, and its outcomes are written
// afterwards. If a worker dies in between, its deliveries have unknown outcomes; they are never sent again unless
// somebody asks for it.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { whenDatabaseIsBack } from '../../queue/settle.ts'
import type { SendingHold } from '../../sending/hold.ts'
import type { ComposedDelivery } from '../engine/channel.ts'
import type { Engine } from '../engine/types.ts'
import type { Attempt } from './batch.ts'
import type { PauseRequest } from './judge-outcome.ts'
import { markSending } from './mark-sending.ts'
import { recordOutcomes } from './record-outcomes.ts'
import { unsubscribeGone } from './unsubscribe-gone.ts'

/** `isLost`: another worker has the shard now. `hold`: why the shard has to wait. */
export type BatchResult = { isLost?: true; hold?: SendingHold | PauseRequest | undefined }

export async function deliverBatch(
  engine: Engine,
  attempt: Attempt,
  batch: readonly ComposedDelivery[],
): Promise<BatchResult> {
  const { db, clock } = engine
  const { work, appId, shard, channel } = attempt
  const isOver = () => work.signal.aborted
  const marked = await db.transaction((db) => markSending(db, attempt, batch, clock.now()))
  if (!marked) return { isLost: true }
  const { sent, hold } = marked
  if (sent.length === 0) return { hold }
  const answers = await send(engine, attempt, sent)
  const outcomes = await whenDatabaseIsBack(
    async () => (await channel.reviewOutcomes?.(db, appId, shard.provider, answers)) ?? answers,
    isOver,
  )
  const pause = await whenDatabaseIsBack(
    () => db.transaction((db) => recordOutcomes(engine, db, attempt, { ...marked, outcomes }, clock.now())),
    isOver,
  )
  await work.recordProgress(db)
  await unsubscribeGone(engine, attempt, sent, outcomes)
  await channel.afterOutcomes?.(engine, appId, sent, outcomes)
  return { hold: hold ?? pause }
}

async function send(
  { sender, stats, log }: Engine,
  { appId, shard }: Attempt,
  batch: readonly ComposedDelivery[],
): Promise<ChannelOutcome[]> {
  const messages = batch.map(({ outgoing }) => outgoing)
  let outcomes: ChannelOutcome[]
  try {
    outcomes = await sender.send(appId, shard, messages)
  } catch (error) {
    log.error({ appId, provider: shard.provider, reason: (error as Error).message }, 'Sender failed unexpectedly')
    outcomes = messages.map(() => ({ kind: 'unknown', reason: 'fault in the server' }))
  }
  for (const { kind } of outcomes) stats.count(shard.provider, kind)
  return outcomes
}
