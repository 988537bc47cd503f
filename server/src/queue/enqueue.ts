import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { NewJob } from './job.ts'
import { insertJobs, type JobRow, notifyApps } from './store.ts'

export type Queue = {
  /**
   * Inside the caller's transaction: the jobs appear with its other rows or not at all.
   * Work that is waiting already stays one job, due at the earlier time; work that is running is done once more
   * afterwards, because it may have read what the caller is only now changing; parked work stays parked.
   */
  enqueue(db: Db, jobs: readonly NewJob[]): Promise<void>
}

export const createQueue = ({ clock, newId }: { clock: Clock; newId: NewId }): Queue => ({
  async enqueue(db, jobs) {
    if (jobs.length === 0) return
    const now = clock.now()
    await db.transaction(async (db) => {
      const due: AppId[] = []
      for (const [appId, rows] of byApp(jobs, now, newId)) {
        await insertJobs(db, appId, rows, now)
        if (rows.some((row) => row.runAt <= now)) due.push(appId)
      }
      // What is due later needs no wake-up now; the sweep finds it.
      if (due.length > 0) await notifyApps(db, due)
    })
  },
})

function byApp(jobs: readonly NewJob[], now: Date, newId: NewId): [AppId, JobRow[]][] {
  const apps = new Map<AppId, Map<string, JobRow>>()
  for (const { appId, name, key, payload = {}, runAt = now } of jobs) {
    const rows = apps.get(appId) ?? new Map<string, JobRow>()
    apps.set(appId, rows)
    const same = `${name}\n${key}`
    const earlier = rows.get(same)?.runAt ?? runAt
    rows.set(same, { id: newId(), name, key, payload, runAt: earlier < runAt ? earlier : runAt })
  }
  return sorted([...apps]).map(([appId, rows]) => [appId, sorted([...rows]).map(([, row]) => row)])
}

// Everybody locks in this order, so that no two callers wait for each other.
const sorted = <Value>(entries: [string, Value][]) => entries.sort(([a], [b]) => (a < b ? -1 : 1))
