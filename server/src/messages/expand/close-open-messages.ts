// Closes open messages whose time is over. They take no more recipients, and are done when nothing of them is pending.

import type { Engine } from '../engine/types.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { findExpiredOpenAcrossApps, lockExpanding, markExpanded } from './open-message-store.ts'

/** A journey may take a while from deciding to add a recipient to adding it. */
const CLOSING_MARGIN_MS = 3_600_000

export async function closeOpenMessages({ db, clock }: Pick<Engine, 'db' | 'clock'>): Promise<void> {
  const expired = await findExpiredOpenAcrossApps(db, new Date(clock.now().getTime() - CLOSING_MARGIN_MS))
  for (const [appId, messages] of Map.groupBy(expired, ({ appId }) => appId)) {
    const ids = messages.map(({ id }) => id)
    await db.transaction(async (db) => {
      await lockExpanding(db, appId, ids)
      await markExpanded(db, appId, ids)
    })
    await completeMessages({ db, clock }, appId, ids)
  }
}
