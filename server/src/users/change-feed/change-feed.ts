// Tells later domains promptly what happened to users. A domain declares what it watches, and nothing else is written.
// Whoever changes users writes the feed entries together with the change; the job CHANGE_FEED_JOB starts the reader of
// the feed.

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

/** The job that reads the feed: see composition/jobs.ts. */
export const CHANGE_FEED_JOB = 'users.news'

const feedJobs = (appId: AppId): NewJob[] => [{ appId, name: CHANGE_FEED_JOB, key: CHANGE_FEED_JOB, lane: 'direct' }]

/**
 * Runs in the caller's transaction. Returns the job that starts the reader of the feed, which the caller must enqueue;
 * empty when nothing was written.
 */
export async function recordFeedEntries(
  db: Db,
  appId: AppId,
  news: readonly NewFeedEntry[],
  now: Date,
): Promise<NewJob[]> {
  if (news.length === 0) return []
  return (await insertFeedEntries(db, appId, news, now)) ? feedJobs(appId) : []
}

/**
 * For statements that write feed entries themselves: inserts the job in the same statement, where `hasNews` is true.
 * Returns the state that the job is in afterwards.
 */
export const feedJobInsert = (queue: Queue, appId: AppId, hasNews: Sql, now: Date): Sql =>
  jobsInsert(appId, queue.rowsOf(appId, feedJobs(appId)), now, hasNews)

/**
 * To be called after the commit, unless the job was already running, in which case it runs once more by itself. If the
 * announcement is lost, the sweep finds the job two seconds later.
 */
export const announceFeedJob = (queue: Queue, db: Db, appId: AppId): Promise<void> =>
  queue.announce(db, feedJobs(appId)).catch(() => {})

/**
 * For statements that have written feed entries themselves. They are committed, so a failure here must not look like a
 * failure of the change: `enqueueLostFeedJobs` finds the entries a little later.
 */
export async function enqueueFeedJob(queue: Queue, db: Db, appId: AppId): Promise<void> {
  await queue.enqueue(db, feedJobs(appId)).catch(() => {})
}

/**
 * Removes and returns the oldest entries, in the transaction that acts on them. Skips entries that another reader is
 * taking.
 */
export async function takeFeedEntries(db: Db, appId: AppId, limit: number): Promise<FeedEntry[]> {
  const taken = await deleteOldestFeedEntries(db, appId, limit)
  return taken
    .toSorted((a, b) => a.at.getTime() - b.at.getTime())
    .map((row) => ({ ...row, event: row.event && { ...row.event, at: new Date(row.event.at) } }))
}

/**
 * Replaces everything that the app is watched for. A change that is under way at that moment may not be recorded
 * although it commits a little later; a transaction takes seconds at most.
 */
export const setWatches = (db: Db, appId: AppId, watches: readonly FeedWatch[]): Promise<void> =>
  db.transaction(async (db) => {
    await deleteOtherWatches(db, appId, watches)
    if (watches.length > 0) await insertWatches(db, appId, watches)
  })

/** Scheduled: enqueues the job for entries whose announcement was lost. */
export async function enqueueLostFeedJobs({ db, clock, newId }: { db: Db; clock: Clock; newId: NewId }): Promise<void> {
  const found = await findAppsWithFeedEntriesAcrossApps(db)
  const jobs = found.flatMap(({ appId }) => feedJobs(appId))
  await createQueue({ clock, newId }).enqueue(db, jobs)
}

/** The entries of a deleted user are of no use to any reader. */
export async function deleteFeedEntriesOf(db: Db, appId: AppId, userId: UserId): Promise<void> {
  await deleteUserFeedEntries(db, appId, userId)
}
