import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { NewJob } from './job.ts'
import { insertJobs, type JobRow, notifyApps, type WakeUp } from './store.ts'

/** Jobs due sooner than this are announced with their time. The sweep looks further ahead and finds the others. */
const SOON_MS = 5_000

export type Queue = {
  /**
   * Runs inside the caller's transaction, so the jobs are committed with the caller's other rows or not at all.
   * A job that is already waiting stays one job, due at the earlier of the two times. A job that is running runs once
   * more afterwards, because it may have read what the caller is only now changing. A parked job stays parked.
   */
  enqueue(db: Db, jobs: readonly NewJob[]): Promise<void>
  /**
   * Builds the rows of one app's jobs, for a caller that inserts them as part of its own statement with `jobsInsert`:
   * accepting work should not take three statements. The caller tells workers with `announce`, after the commit.
   */
  rowsOf(appId: AppId, jobs: readonly NewJob[]): JobRow[]
  /** Tells workers about the jobs. If the announcement is lost, the sweep finds the jobs two seconds later. */
  announce(db: Db, jobs: readonly NewJob[]): Promise<void>
}

export const createQueue = ({ clock, newId }: { clock: Pick<Clock, 'now'>; newId: NewId }): Queue => ({
  async enqueue(db, jobs) {
    if (jobs.length === 0) return
    const now = clock.now()
    await db.transaction((db) => insertAll(db, byApp(jobs, now, newId), now))
  },
  rowsOf: (appId, jobs) => new Map(byApp(jobs, clock.now(), newId)).get(appId) ?? [],
  async announce(db, jobs) {
    const now = clock.now()
    await announceSoon(db, byApp(jobs, now, newId), now)
  },
})

/**
 * Announces the jobs, unless all of them are already running and due again now: the worker that runs a job checks for
 * that itself. Announcements are expensive: each one makes all workers look for jobs, and PostgreSQL commits
 * transactions that notify one after the other.
 */
async function insertAll(db: Db, all: readonly [AppId, JobRow[]][], now: Date) {
  const news: [AppId, JobRow[]][] = []
  for (const [appId, rows] of all) {
    const running = await insertJobs(db, appId, rows, now)
    if (running < rows.length || rows.some(({ runAt }) => runAt > now)) news.push([appId, rows])
  }
  await announceSoon(db, news, now)
}

async function announceSoon(db: Db, jobs: readonly [AppId, JobRow[]][], now: Date) {
  const soon = jobs.flatMap(([appId, rows]): WakeUp[] => {
    const at = new Date(Math.min(...rows.map(({ runAt }) => runAt.getTime())))
    if (at.getTime() >= now.getTime() + SOON_MS) return []
    return at <= now ? [{ appId }] : [{ appId, at }]
  })
  if (soon.length > 0) await notifyApps(db, soon)
}

function byApp(jobs: readonly NewJob[], now: Date, newId: NewId): [AppId, JobRow[]][] {
  const apps = new Map<AppId, Map<string, JobRow>>()
  for (const { appId, name, key, payload = {}, runAt = now, lane = 'bulk' } of jobs) {
    const rows = apps.get(appId) ?? new Map<string, JobRow>()
    apps.set(appId, rows)
    const same = `${name}\n${key}`
    const earlier = rows.get(same)?.runAt ?? runAt
    rows.set(same, { id: newId(), name, key, payload, runAt: earlier < runAt ? earlier : runAt, lane })
  }
  return sorted([...apps]).map(([appId, rows]) => [appId, sorted([...rows]).map(([, row]) => row)])
}

// All callers lock in this order, so that no two callers wait for each other.
const sorted = <Value>(entries: [string, Value][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1))
