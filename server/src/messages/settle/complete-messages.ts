// Completes messages that have no pending deliveries. The worker that writes the last outcomes checks for this; after a
// crash, the schedule does.

import type { AppId } from '../../lib/ids.ts'
import { findSettled } from '../counts/store.ts'
import type { Engine } from '../engine/types.ts'
import type { MessageId } from '../message.ts'
import { findSendingAcrossApps, lockSending, markDone } from './store.ts'

export async function completeMessages(
  { db, clock }: Pick<Engine, 'db' | 'clock'>,
  appId: AppId,
  ids: readonly MessageId[],
) {
  if (ids.length === 0) return
  const settled = await findSettled(db, appId, ids)
  if (settled.length === 0) return
  await db.transaction(async (db) => {
    const locked = await lockSending(db, appId, settled)
    // Checked again under the lock: a delivery may have become pending meanwhile.
    if (locked.length > 0) await markDone(db, appId, await findSettled(db, appId, locked), clock.now())
  })
}

export async function completeMessagesAcrossApps(engine: Pick<Engine, 'db' | 'clock'>): Promise<void> {
  const apps = Map.groupBy(await findSendingAcrossApps(engine.db), ({ appId }) => appId)
  for (const [appId, messages] of apps)
    await completeMessages(
      engine,
      appId,
      messages.map(({ id }) => id),
    )
}
