// Inserts new users of many requests in one statement, which makes Create user cheap. The statement leaves out requests
// that contain an alias or a token that already exists; they take the general path of changes.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { enqueueFeedJob } from './change-feed/change-feed.ts'
import { insertNewUsers } from './new-user-store.ts'
import type { Subscription } from './subscriptions/subscription.ts'
import type { User } from './user.ts'

export type NewUser = { user: User; subscriptions: Subscription[] }

/** True when the user was inserted; false when one of its aliases or tokens already exists, and nothing was written. */
export type InsertNewUser = (appId: AppId, fresh: NewUser) => Promise<boolean>

type InsertNewUserContext = { db: Db; clock: Clock; newId: NewId; merger: Merger }

export function createInsertNewUser({ db, clock, newId, merger }: InsertNewUserContext): InsertNewUser {
  const queue = createQueue({ clock, newId })
  return merger.merged<NewUser, boolean>({
    name: 'users.create',
    share: 0.5,
    async run(appId, inputs) {
      const taken = new Set<string>()
      const first = inputs.map((fresh) => isFirst(fresh, taken))
      const { known, isNews } = await insertNewUsers(
        db,
        appId,
        inputs.map(({ user }) => user).filter((_, i) => first[i]),
      )
      if (isNews) await enqueueFeedJob(queue, db, appId)
      return inputs.map(({ user }, i) => ({ value: first[i] === true && !known.has(user.id) }))
    },
  })
}

/**
 * Whether no earlier request of the batch has the same alias, token or install. A later one must see what the earlier
 * created.
 */
function isFirst({ user, subscriptions }: NewUser, taken: Set<string>): boolean {
  const keys = [...user.aliases].map(([label, value]) => `a\0${label}\0${value}`)
  for (const { type, tokenHash, installId } of subscriptions) {
    if (tokenHash !== null) keys.push(`s\0${type}\0${tokenHash}`)
    if (installId !== null) keys.push(`i\0${installId}`)
  }
  const isNew = keys.every((key) => !taken.has(key))
  if (isNew) for (const key of keys) taken.add(key)
  return isNew
}
