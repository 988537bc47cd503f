import { findAllApps } from '../apps/store.ts'
import type { AppId, UserId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { deleteInteractionCounts, deleteSeen, deleteSeenByUser } from './interaction-store.ts'
import type { InAppMessageId } from './message.ts'
import { deleteGrantsExpiredBefore, deleteGrantsOfMessage, deleteGrantsOfUser } from './store.ts'

export const DELETE_MESSAGE_DATA = 'in-app.forget'

/** Gives statements that read the message before it was deleted time to end. */
const DELAY_MS = 60_000
const ROWS_AT_ONCE = 10_000

export const deleteMessageDataJob = (appId: AppId, id: InAppMessageId, now: Date): NewJob => ({
  appId,
  name: DELETE_MESSAGE_DATA,
  key: id,
  runAt: new Date(now.getTime() + DELAY_MS),
})

/** Deletes who saw a deleted message, its counts and its grants. */
export async function deleteMessageData(db: Db, appId: AppId, id: InAppMessageId): Promise<void> {
  while ((await deleteSeen(db, appId, id, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
  await deleteInteractionCounts(db, appId, id)
  await deleteGrantsOfMessage(db, appId, id)
}

/** Deletes what a deleted user saw and was granted. The counts stay, because they identify nobody. */
export async function deleteInAppDataOfUser(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteSeenByUser(db, appId, userId)
  await deleteGrantsOfUser(db, appId, userId)
}

/**
 * Deletes expired grants of all apps. This only frees space, because the expiry is checked wherever grants are used.
 */
export async function deleteExpiredInAppGrants(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    while ((await deleteGrantsExpiredBefore(db, id, now, ROWS_AT_ONCE)) === ROWS_AT_ONCE);
}
