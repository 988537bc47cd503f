// Writes the difference between what was loaded and what the commands made of it, as sets: first deletions, then
// additions, parents before children; deleted users come last.

import { insertAuditEntries } from '../apps/store.ts'
import type { AppId, NewId, SubscriptionId, UserId } from '../lib/ids.ts'
import type { Queue } from '../queue/enqueue.ts'
import type { NewJob } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import type { Alias } from './aliases/identity.ts'
import { deleteAliases, insertAliases, type OwnedAlias } from './aliases/store.ts'
import { recordFeedEntries } from './change-feed/change-feed.ts'
import { findFeedEntries } from './change-feed/compare.ts'
import type { FeedKind } from './change-feed/feed.ts'
import { adjustPlayerCounts, adjustUserCounts, type PlayerCounts, type UserCountChange } from './count-store.ts'
import { userDeletedJobs } from './deletion-jobs.ts'
import { columnValues } from './properties/columns.ts'
import { deleteUsers, insertPurchases, insertUsers, updateUsers, upsertUserActivity } from './properties/store.ts'
import type { StoredProperties } from './properties/stored.ts'
import { countCustom, countReachable, userRow } from './rows.ts'
import {
  deleteSubscriptions,
  insertSubscriptions,
  releaseInstalls,
  updateSubscriptions,
  upsertSubscriptionActivity,
} from './subscriptions/store.ts'
import type { User } from './user.ts'
import type { WorkingSet } from './working-set.ts'

/**
 * Returns the job that starts the reader of the change feed, if there are entries. It is not enqueued here, because a
 * transaction that locks the job's row keeps others waiting until it commits.
 */
export async function writeDifference(
  { db, queue, newId, watched }: { db: Db; queue: Queue; newId: NewId; watched: ReadonlySet<FeedKind> },
  appId: AppId,
  state: WorkingSet,
  now: Date,
): Promise<NewJob[]> {
  const { before } = state
  const users = [...state.users.values()]
  const added = users.filter((user) => !before.users.has(user.id))
  const changed = users.filter((user) => isChanged(user, before.users.get(user.id)?.properties))
  const aliases = compareAliases(state, users)
  const subscriptions = [...state.subscriptions.values()]
  const addedSubscriptions = subscriptions.filter((it) => !before.subscriptions.has(it.id))
  const changedSubscriptions = subscriptions.filter((it) => (before.subscriptions.get(it.id) ?? it) !== it)

  const step = async <Row>(rows: Row[], write: (db: Db, appId: AppId, rows: Row[]) => Promise<unknown>) => {
    if (rows.length > 0) await write(db, appId, rows)
  }
  await step(aliases.removed, deleteAliases)
  await step(gone(before.subscriptions, state.subscriptions), deleteSubscriptions)
  await step(added.map(userRow), (db, appId, rows) => insertUsers(db, appId, rows, now))
  await step(changed.map(userRow), (db, appId, rows) => updateUsers(db, appId, rows, now))
  await step(compareCounts(state, users), (db, appId, rows) => adjustUserCounts(db, appId, rows, now))
  // Aliases before tokens, as in the statement for new users: in opposite orders the two would deadlock.
  await step(aliases.added, insertAliases)
  await step(released(state), releaseInstalls)
  await step(changedSubscriptions, updateSubscriptions)
  await step(addedSubscriptions, insertSubscriptions)
  // Last, because the delete cascades to everything the user owns: what moved to other users must belong to them by
  // then.
  await step(gone(before.users, state.users), deleteUsers)
  await queue.enqueue(db, userDeletedJobs(appId, gone(before.users, state.users), now))
  await step(
    users.filter((user) => isActive(user.properties, user.createdAt, before.users.get(user.id)?.properties)),
    upsertUserActivity,
  )
  await step(
    subscriptions.filter((it) => isActive(it, it.createdAt, before.subscriptions.get(it.id))),
    upsertSubscriptionActivity,
  )
  const purchases = state.purchases.filter(({ userId }) => state.users.has(userId))
  await step(purchases, (db, appId, rows) => insertPurchases(db, appId, rows, now, newId))
  await step(
    state.audit.map((note) => ({ ...note, id: newId() })),
    (db, appId, rows) => insertAuditEntries(db, appId, rows, now),
  )
  const news = watched.size > 0 ? findFeedEntries(state).filter(({ kind }) => watched.has(kind)) : []
  const jobs = await recordFeedEntries(db, appId, news, now)
  const counts = comparePlayerCounts(state)
  if (Object.values(counts).some((by) => by !== 0)) await adjustPlayerCounts(db, appId, counts)
  return jobs
}

function comparePlayerCounts({ before, subscriptions }: WorkingSet): PlayerCounts {
  const was = countReachable(before.subscriptions.values())
  const is = countReachable(subscriptions.values())
  return {
    players: subscriptions.size - before.subscriptions.size,
    subscribed: is.subscribed - was.subscribed,
    messageable: is.messageable - was.messageable,
  }
}

const gone = <Key, A, B>(before: ReadonlyMap<Key, A>, after: ReadonlyMap<Key, B>): Key[] =>
  [...before.keys()].filter((key) => !after.has(key))

/** Subscriptions whose install another one may have now. */
const released = ({ before, subscriptions }: WorkingSet): SubscriptionId[] =>
  [...before.subscriptions.values()]
    .filter(({ id, installId }) => {
      const after = subscriptions.get(id)
      return installId !== null && after !== undefined && after.installId !== installId
    })
    .map(({ id }) => id)

const columnsOf = (properties: StoredProperties): unknown[] => [
  properties.tags,
  ...columnValues(properties),
  properties.firstActive,
  properties.amountSpent,
]

/** Whether the wide user row changes. Sessions alone do not touch it. */
function isChanged(user: User, before: StoredProperties | undefined): boolean {
  if (before === undefined || before === user.properties) return false
  const after = columnsOf(user.properties)
  return columnsOf(before).some((value, i) => value !== after[i])
}

function compareCounts(state: WorkingSet, users: User[]): UserCountChange[] {
  const owned = new Map<UserId, number>()
  const count = (id: UserId, by: number) => owned.set(id, (owned.get(id) ?? 0) + by)
  for (const it of state.before.subscriptions.values()) count(it.userId, -1)
  for (const it of state.subscriptions.values()) count(it.userId, 1)
  return users
    .map(({ id, aliases }) => {
      const before = state.before.users.get(id)?.aliases ?? new Map()
      return { id, aliases: countCustom(aliases) - countCustom(before), subscriptions: owned.get(id) ?? 0 }
    })
    .filter(({ aliases, subscriptions }) => aliases !== 0 || subscriptions !== 0)
}

function compareAliases(state: WorkingSet, users: User[]): { added: OwnedAlias[]; removed: Alias[] } {
  const added: OwnedAlias[] = []
  const removed: Alias[] = []
  for (const [id, { aliases }] of state.before.users) {
    const kept = state.users.get(id)?.aliases
    for (const [label, value] of aliases) if (kept?.get(label) !== value) removed.push({ label, value })
  }
  for (const user of users) {
    const before = state.before.users.get(user.id)?.aliases
    for (const [label, value] of user.aliases)
      if (before?.get(label) !== value) added.push({ label, value, userId: user.id })
  }
  return { added, removed }
}

type SessionActivity = { lastActive: string; sessionCount: number; sessionTime: number }

/** A user or subscription that was never active needs no activity row: its last activity is its creation. */
function isActive(after: SessionActivity, createdAt: string, before?: SessionActivity): boolean {
  const { lastActive, sessionCount, sessionTime } = before ?? { lastActive: createdAt, sessionCount: 0, sessionTime: 0 }
  return after.lastActive !== lastActive || after.sessionCount !== sessionCount || after.sessionTime !== sessionTime
}
