import { findAllApps } from '../apps/store.ts'
import type { AppId, UserId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { deleteCounts, deleteSeen, deleteSeenByUser } from './count-store.ts'
import type { InAppMessageId } from './message.ts'
import { deleteExpiredGrants, deleteGrantsOfMessage, deleteGrantsOfUser } from './store.ts'

export const FORGET_MESSAGE = 'in-app.forget'

/** Time for statements to end that had found the message before it went. */
const DELAY_MS = 60_000
const ROWS_AT_ONCE = 10_000

export const forgetMessageJob = (appId: AppId, id: InAppMessageId, now: Date): NewJob => ({
  appId,
  name: FORGET_MESSAGE,
  key: id,
  runAt: new Date(now.getTime() + DELAY_MS),
})

/** Who saw a deleted message, how often, and who was to see it. */
export async function forgetMessage(db: Db, appId: AppId, id: InAppMessageId): Promise<void> {
  while ((await deleteSeen(db, appId, id, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
  await deleteCounts(db, appId, id)
  await deleteGrantsOfMessage(db, appId, id)
}

/** What a deleted user saw, and was to see. The counts stay: they name nobody. */
export async function forgetInAppOf(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteSeenByUser(db, appId, userId)
  await deleteGrantsOfUser(db, appId, userId)
}

/** Grants that count no more, of all apps. That they do not is decided where they are used; this only makes room. */
export async function forgetExpiredGrants(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    while ((await deleteExpiredGrants(db, id, now, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
}
