// Open messages whose time is over take nobody any more, and are done like all others when nothing of them waits.

import type { Engine } from '../engine/engine.ts'
import { completeMessages } from '../settle/complete-messages.ts'
import { findExpiredOpenAcrossApps, lockExpanding, markExpanded } from './open-message-store.ts'

/** Who decides that somebody is to be added may take a while to do so. */
const CLOSING_MARGIN_MS = 3_600_000

export async function closeOpenMessages({ db, clock }: Pick<Engine, 'db' | 'clock'>): Promise<void> {
  const found = await findExpiredOpenAcrossApps(db, new Date(clock.now().getTime() - CLOSING_MARGIN_MS))
  for (const [appId, messages] of Map.groupBy(found, ({ appId }) => appId)) {
    const ids = messages.map(({ id }) => id)
    await db.transaction(async (db) => {
      await lockExpanding(db, appId, ids)
      await markExpanded(db, appId, ids)
    })
    await completeMessages({ db, clock }, appId, ids)
  }
}
