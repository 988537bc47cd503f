// How a later domain learns, at once, of what happened to users. It says what it wants to hear of; of everything else not a row
// is written. Whoever changes users writes the news with the change; the job NEWS wakes who takes them.

import type { Clock } from '../../lib/clock.ts'
import type { AppId, NewId, UserId } from '../../lib/ids.ts'
import { createQueue, type Queue } from '../../queue/enqueue.ts'
import type { NewJob } from '../../queue/job.ts'
import { jobsInsert } from '../../queue/store.ts'
import type { Db } from '../../storage/db.ts'
import type { Sql } from '../../storage/sql.ts'
import type { FeedEntry, FeedWatch, NewFeedEntry } from './feed.ts'
import {
  deleteOldestFeedEntries,
  deleteOtherWatches,
  deleteUserFeedEntries,
  findAppsWithFeedEntriesAcrossApps,
  insertFeedEntries,
  insertWatches,
} from './store.ts'

/** The job of who takes the news: see jobs.ts. */
export const CHANGE_FEED_JOB = 'users.news'

const feedJobs = (appId: AppId): NewJob[] => [{ appId, name: CHANGE_FEED_JOB, key: CHANGE_FEED_JOB, lane: 'direct' }]

/** In the caller's transaction, which enqueues what comes back: the job that wakes who takes the news, if there are any. */
export async function recordFeedEntries(
  db: Db,
  appId: AppId,
  news: readonly NewFeedEntry[],
  now: Date,
): Promise<NewJob[]> {
  if (news.length === 0) return []
  return (await insertFeedEntries(db, appId, news, now)) ? feedJobs(appId) : []
}

/** For statements that write news themselves: the job as a part of them, where `hasNews`. It tells which state that is in now. */
export const feedJobInsert = (queue: Queue, appId: AppId, hasNews: Sql, now: Date): Sql =>
  jobsInsert(appId, queue.rowsOf(appId, feedJobs(appId)), now, hasNews)

/** Afterwards, unless it runs: then it is done once more. Should this be lost, the sweep finds the job two seconds later. */
export const announceFeedJob = (queue: Queue, db: Db, appId: AppId): Promise<void> =>
  queue.announce(db, feedJobs(appId)).catch(() => {})

/**
 * For statements that have written news themselves. What they did is done, and must not look as if it were not: should this
 * fail, `enqueueLostFeedJobs` finds the news a little later.
 */
export async function enqueueFeedJob(queue: Queue, db: Db, appId: AppId): Promise<void> {
  await queue.enqueue(db, feedJobs(appId)).catch(() => {})
}

/** In the transaction that acts on them: the oldest, which are then gone. What somebody else is taking is left to them. */
export async function takeFeedEntries(db: Db, appId: AppId, limit: number): Promise<FeedEntry[]> {
  const taken = await deleteOldestFeedEntries(db, appId, limit)
  return taken
    .toSorted((a, b) => a.at.getTime() - b.at.getTime())
    .map((row) => ({ ...row, event: row.event && { ...row.event, at: new Date(row.event.at) } }))
}

/**
 * All that the app is to be watched for, in the place of what was before. A change that is under way at that moment may not be
 * noted, though it is committed a little later: a transaction takes seconds at most.
 */
export const setWatches = (db: Db, appId: AppId, watches: readonly FeedWatch[]): Promise<void> =>
  db.transaction(async (db) => {
    await deleteOtherWatches(db, appId, watches)
    if (watches.length > 0) await insertWatches(db, appId, watches)
  })

/** The schedule: news whose announcement was lost. */
export async function enqueueLostFeedJobs({ db, clock, newId }: { db: Db; clock: Clock; newId: NewId }): Promise<void> {
  const found = await findAppsWithFeedEntriesAcrossApps(db)
  const jobs = found.flatMap(({ appId }) => feedJobs(appId))
  await createQueue({ clock, newId }).enqueue(db, jobs)
}

/** Nobody needs to hear of a user that is gone. */
export async function deleteFeedEntriesOf(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteUserFeedEntries(db, appId, userId)
}
