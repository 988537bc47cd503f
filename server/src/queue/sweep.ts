// Finds what no notification announces: timers that came due, lost notifications, dead workers, schedules.

import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/db.ts'
import { analyzeJobs, findDueAppsAcrossApps, leaveLead, recoverCrashed, takeLead, type WakeUp } from './store.ts'

export const CRASHES_TO_PARK = 5

const LEAD = 'sweep'

/**
 * The table is empty most of the time, and plans cached then scan all jobs of an app to claim a few: 115 ms per claim
 * with 300,000 jobs, against 0.3 ms with fresh statistics. Autovacuum would notice a burst only after a minute.
 */
const BURST = 10_000

export type SweepOptions = {
  db: Db
  clock: Clock
  log: Log
  holder: string
  leadMs: number
  /** How far ahead the sweep looks: jobs that come due before the next round must not wait for it. */
  aheadMs: number
  /**
   * How long workers have to renew their leases after this node could not reach the database: they may have been cut
   * off too.
   */
  graceMs: number
  enqueueSlots: (db: Db, now: Date) => Promise<void>
}

export type QueueSweep = {
  /**
   * Recovers the jobs of dead workers, enqueues the slots of schedules, and returns the apps with work to do now or
   * soon.
   */
  sweep(): Promise<WakeUp[]>
  /** Does the same on one node for all of them; the other nodes get an empty list. */
  sweepAsLeader(): Promise<WakeUp[]>
  resign(): Promise<void>
}

export function createSweep(options: SweepOptions): QueueSweep {
  const { db, clock, log, holder, leadMs, aheadMs, graceMs, enqueueSlots } = options
  let analyzedAt = 0
  /** The time since when every round was on time and reached the database. */
  let steadySinceMs = Number.NEGATIVE_INFINITY
  let lookedMs: number | undefined

  async function followBurst(due: number) {
    if (due < BURST) analyzedAt = 0
    else if (due > 4 * analyzedAt) {
      analyzedAt = due
      await analyzeJobs(db)
    }
  }

  async function tend(mayRecover = true) {
    const now = clock.now()
    const leaseNow = new Date(clock.leaseMs())
    await enqueueSlots(db, now)
    const apps = await findDueAppsAcrossApps(db, new Date(now.getTime() + aheadMs), leaseNow)
    for (const { appId, crashed } of apps) if (crashed && mayRecover) await recover(appId, leaseNow, now)
    await followBurst(apps.reduce((sum, { count }) => sum + count, 0))
    return apps.map(({ appId, crashed, at }) => (crashed || at <= now ? { appId } : { appId, at }))
  }

  async function recover(appId: AppId, leaseNow: Date, now: Date) {
    for (const { id, name, crashes, state } of await recoverCrashed(db, appId, leaseNow, now, CRASHES_TO_PARK)) {
      const about = { job: name, appId, id, crashes }
      if (state === 'parked') log.error({ ...about, alarm: true }, 'Parked job after repeated worker crashes')
      else log.warn(about, 'Released job of an unresponsive worker')
    }
  }

  async function lead() {
    const leaseMs = clock.leaseMs()
    if (lookedMs !== undefined && leaseMs - lookedMs > leadMs) steadySinceMs = leaseMs
    lookedMs = leaseMs
    const isLeader = await takeLead(db, LEAD, holder, new Date(leaseMs), new Date(leaseMs + leadMs))
    return isLeader ? tend(leaseMs - steadySinceMs >= graceMs) : []
  }

  return {
    sweep: () => tend(),
    async sweepAsLeader() {
      try {
        return await lead()
      } catch (error) {
        steadySinceMs = Number.POSITIVE_INFINITY
        lookedMs = Number.NEGATIVE_INFINITY
        throw error
      }
    },
    async resign() {
      await leaveLead(db, LEAD, holder)
    },
  }
}
