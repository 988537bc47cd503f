// What is kept for as long as it is of use.

import { findAllApps } from '../../apps/store.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import { readSending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { deleteCounts } from '../counts/store.ts'
import { deleteOldRecent, deleteRecentOf } from '../deliver/recent-sends-store.ts'
import { deleteOldMessages } from './store.ts'

const DAY_MS = 86_400_000
const AT_ONCE = 1_000
/** Longer than any frequency cap looks back. */
const RECENT_DAYS = 31

/** The deliveries of a user who was deleted stay: they hold ids, and no more, and the counts of messages rest on them. */
export async function forgetSendsTo(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteRecentOf(db, appId, userId)
}

export async function forgetOldMessages(db: Db, now: Date, retentionDays: number): Promise<void> {
  for (const { id: appId } of await findAllApps(db)) {
    const { settings } = await readSending(db, appId, now)
    // An app may keep its messages for less time than the server; what is left of their deliveries goes with its month.
    const days = Math.min(retentionDays, settings.retentionDays ?? retentionDays)
    const before = new Date(now.getTime() - days * DAY_MS)
    await deleteOldRecent(db, appId, new Date(now.getTime() - RECENT_DAYS * DAY_MS))
    for (let count = AT_ONCE; count === AT_ONCE; )
      count = await db.transaction(async (db) => {
        const gone = (await deleteOldMessages(db, appId, before, AT_ONCE)).map(({ id }) => id)
        await deleteCounts(db, appId, gone)
        return gone.length
      })
  }
}
