import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { NewJob } from './job.ts'
import { insertJobs, type JobRow, notifyApps, type WakeUp } from './store.ts'

/** What is due sooner than this is announced with its time. The sweep, which looks further ahead, finds the rest. */
const SOON_MS = 5_000

export type Queue = {
  /**
   * Inside the caller's transaction: the jobs appear with its other rows or not at all.
   * Work that is waiting already stays one job, due at the earlier time; work that is running is done once more
   * afterwards, because it may have read what the caller is only now changing; parked work stays parked.
   */
  enqueue(db: Db, jobs: readonly NewJob[]): Promise<void>
  /**
   * The same for jobs of one app that become part of a statement of the caller's, by `jobsInsert`: to accept work should not
   * take three statements. Workers learn of them by `announce`, after the commit.
   */
  rowsOf(appId: AppId, jobs: readonly NewJob[]): JobRow[]
  /** Should it be lost, the sweep finds the jobs two seconds later. */
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
 * Workers are told, unless all of it runs and is to be done again now: who has it looks once more. Every announcement makes all workers
 * look for jobs, and PostgreSQL commits those that announce something one after the other.
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

// Everybody locks in this order, so that no two callers wait for each other.
const sorted = <Value>(entries: [string, Value][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1))
