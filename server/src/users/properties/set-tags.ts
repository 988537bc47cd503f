// Tags that the server itself sets, for many users, in the caller's transaction.

import type { AppId, NewId, UserId } from '../../lib/ids.ts'
import type { Queue } from '../../queue/enqueue.ts'
import type { Db } from '../../storage/db.ts'
import { loadLockedUsers } from '../load-store.ts'
import { lockReferencedUsers } from '../reference-store.ts'
import { changeProperties } from '../update.ts'
import { createWorkingSet } from '../working-set.ts'
import { writeDifference } from '../write-difference.ts'
import { readProperties } from './properties.ts'

/** An empty value removes the tag. */
export type TagChange = { userId: UserId; tags: Record<string, string> }

/**
 * Applies the changes in order, each on the result of those before. Skips deleted users. Locks rows in the order of
 * their ids.
 */
export async function setTags(
  { queue, newId }: { queue: Queue; newId: NewId },
  db: Db,
  appId: AppId,
  list: readonly TagChange[],
  now: Date,
): Promise<void> {
  if (list.length === 0) return
  const refs = [...new Set(list.map(({ userId }) => userId))].map((id) => ({ id }))
  const { ids, watched } = await lockReferencedUsers(db, appId, refs)
  if (ids.length === 0) return
  const { users } = await loadLockedUsers(db, appId, ids, { subscriptions: false, purchases: false }, [])
  const state = createWorkingSet(users)
  for (const { userId, tags } of list) {
    const user = state.find({ id: userId })
    if (user) changeProperties(state, user, readProperties({ tags }), now.toISOString())
  }
  await queue.enqueue(db, await writeDifference({ db, queue, newId, watched }, appId, state, now))
}
