// Deletes messages and what belongs to them when their retention ends.

import { findAllApps } from '../../apps/store.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import { readSending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { deleteCounts } from '../counts/store.ts'
import { deleteRecentSendsBefore, deleteRecentSendsOf } from '../deliver/recent-sends-store.ts'
import { deleteMessagesBefore } from './store.ts'

const DAY_MS = 86_400_000
const DELETE_LIMIT = 1_000
/** Longer than the window of any frequency cap. */
const RECENT_SENDS_DAYS = 31

/** Deliveries of a deleted user stay: they hold nothing but ids, and the counts of messages depend on them. */
export async function deleteSendsTo(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteRecentSendsOf(db, appId, userId)
}

export async function deleteExpiredMessages(db: Db, now: Date, retentionDays: number): Promise<void> {
  for (const { id: appId } of await findAllApps(db)) {
    const { settings } = await readSending(db, appId, now)
    // An app may have a shorter retention than the server. The remaining deliveries are dropped with their month.
    const days = Math.min(retentionDays, settings.retentionDays ?? retentionDays)
    const before = new Date(now.getTime() - days * DAY_MS)
    await deleteRecentSendsBefore(db, appId, new Date(now.getTime() - RECENT_SENDS_DAYS * DAY_MS))
    for (let count = DELETE_LIMIT; count === DELETE_LIMIT; )
      count = await db.transaction(async (db) => {
        const gone = (await deleteMessagesBefore(db, appId, before, DELETE_LIMIT)).map(({ id }) => id)
        await deleteCounts(db, appId, gone)
        return gone.length
      })
  }
}
