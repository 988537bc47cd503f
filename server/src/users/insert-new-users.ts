// New users, many requests in one statement: what makes Create user cheap. Requests that meet something known
// (an alias, a token) are left out by the same statement and go the way of all changes.

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

/** True when the user was inserted; false when an alias or token of it is known, and nothing was done. */
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

/** Does no earlier request of the batch bring the same alias, token or install? The later one sees what the earlier made. */
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
