import { findAllApps } from '../apps/store.ts'
import type { AppId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { deleteExpiredKeys, deleteUserEvents } from './store.ts'

/** How long two events with the same idempotency key count as the same event. */
export const KEY_MS = 86_400_000
const KEYS_AT_ONCE = 10_000

export const oldestValidKeyTime = (now: Date) => new Date(now.getTime() - KEY_MS)

export async function deleteEventsOfUser(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteUserEvents(db, appId, userId)
}

/**
 * Deletes expired idempotency keys of all apps. Whether a key has expired is decided where it is used; this only frees
 * space.
 */
export async function deleteExpiredEventKeys(db: Db, now: Date): Promise<void> {
  for (const { id } of await findAllApps(db))
    while ((await deleteExpiredKeys(db, id, oldestValidKeyTime(now), KEYS_AT_ONCE)) === KEYS_AT_ONCE);
}
