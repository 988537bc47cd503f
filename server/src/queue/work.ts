// A worker claims due jobs, one app at a time in turns, runs them, and renews their leases.

import type { Clock } from '../lib/clock.ts'
import { type AppId, type NewId, newId as randomId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { Db } from '../storage/db.ts'
import type { Listener } from '../storage/listen.ts'
import { createQueue } from './enqueue.ts'
import { type ClaimTurn, createFairQueue } from './fair-queue.ts'
import type { ClaimedJob, JobHandlers } from './job.ts'
import { LeaseLost, runAttempt, Stopping } from './run.ts'
import { createSlots, type Schedule, scheduleHandlers } from './schedule.ts'
import { type Settled, settle, whenDatabaseIsBack } from './settle.ts'
import * as store from './store.ts'
import { CRASHES_TO_PARK, createSweep } from './sweep.ts'

export type WorkerTiming = {
  leaseMs: number
  heartbeatMs: number
  sweepMs: number
  /** How long stop() lets jobs finish before it aborts them, and how long an aborted job has to unwind. */
  finishMs: number
  unwindMs: number
}

// stop() has 20 s in total: 15 to finish, 2 to unwind, the rest to return jobs to the queue.
// When a worker is frozen or dead, others take over its jobs only after the leases expire, so leases are short. Four
// heartbeats fit into one.
const TIMING: WorkerTiming = { leaseMs: 10_000, heartbeatMs: 2_500, sweepMs: 2_000, finishMs: 15_000, unwindMs: 2_000 }
/** Most jobs spend their time waiting for a provider or for the database. */
const CONCURRENCY = 18
const HAND_BACK_MS = 2_000
const LEAVE_MS = 500

/**
 * When a process dies, each of its jobs counts a crash, whether it caused it or not. After two crashes a job never runs
 * beside another such job, so that in the end only the culprit is parked.
 */
const CRASHES_TO_SUSPECT = 2

export type WorkerOptions = {
  db: Db
  clock: Clock
  log: Log
  handlers: JobHandlers
  schedules?: readonly Schedule[]
  listener?: Listener
  /** How many jobs run at once, without the direct lane, for which a third as many slots come on top. */
  concurrency?: number
  random?: () => number
  newId?: NewId
  timing?: Partial<WorkerTiming>
}

export type Worker = {
  start(): void
  /** Takes no new work; jobs in flight are finished or returned to the queue within 20 s. */
  stop(): Promise<void>
  /** For tests: runs in the foreground what is due now and what that makes due. Returns how many jobs ran. */
  runDue(): Promise<number>
  running(): number
}

type HeldJob = { job: ClaimedJob; abort: AbortController; leaseUntilMs: number; ended: Promise<void> }

export function createWorker(options: WorkerOptions): Worker {
  const {
    db,
    clock,
    log,
    listener,
    schedules = [],
    concurrency = CONCURRENCY,
    random = Math.random,
    newId = randomId,
  } = options
  const timing = { ...TIMING, ...options.timing }
  const { sweepMs } = timing
  const handlers: JobHandlers = { ...options.handlers, ...scheduleHandlers(schedules) }
  const enqueueSlots = createSlots(schedules, createQueue({ clock, newId }))
  const sweep = createSweep({
    db,
    clock,
    log,
    holder: newId(),
    leadMs: 3 * sweepMs,
    aheadMs: 2 * sweepMs,
    graceMs: timing.leaseMs,
    enqueueSlots,
  })

  const held = new Map<string, HeldJob>()
  const handlerOf = (name: string) => ownProperty(handlers, name)
  const rota = createFairQueue({
    slots: concurrency,
    running: () => [...held.values()].map(({ job }) => job),
    waitsFor({ name, key }) {
      const handler = handlerOf(name)
      const prefix = handler?.waitsFor?.(key)
      return prefix === undefined ? undefined : { prefix, most: handler?.maxWaiting?.(key) }
    },
  })
  // Timers for apps that were announced with a later time.
  const alarms = new Map<string, NodeJS.Timeout>()
  const timers: NodeJS.Timeout[] = []
  const chores = new Set<Promise<void>>()
  let filling: Promise<void> | undefined
  let isStopping = false
  let started = 0

  const isSuspect = (job: ClaimedJob) => job.crashes >= CRASHES_TO_SUSPECT

  const nextTurn = () => (isStopping ? undefined : rota.takeTurn())

  async function takeTurns() {
    try {
      for (let turn = nextTurn(); turn; turn = nextTurn()) {
        // Fewer jobs than asked for may only mean that another worker claims at the same time; none means there are
        // none.
        if ((await claim(turn)) > 0) rota.requeue(turn)
      }
    } finally {
      filling = undefined
    }
  }

  function fill(): Promise<void> {
    filling ??= isStopping || !rota.hasTurn() ? undefined : takeTurns()
    return filling ?? Promise.resolve()
  }

  function wakeLater(appId: AppId, at: Date) {
    const name = `${appId} ${at.getTime()}`
    if (isStopping || alarms.has(name)) return
    const ring = () => {
      alarms.delete(name)
      wake([{ appId }])
    }
    alarms.set(name, setTimeout(ring, Math.max(0, at.getTime() - clock.now().getTime())).unref())
  }

  function wake(wakeUps: readonly store.WakeUp[]) {
    for (const { appId, at } of wakeUps)
      if (at && at > clock.now()) wakeLater(appId, at)
      else rota.add([appId])
    fill().catch((error) => log.warn({ reason: error.message }, 'Could not claim jobs; the next sweep retries'))
  }

  async function claim({ appId, lane, limit: most, saturated: crowded }: ClaimTurn): Promise<number> {
    const leaseUntilMs = clock.leaseMs() + timing.leaseMs
    const hasSuspect = [...held.values()].some(({ job }) => isSuspect(job))
    const jobs = await store.claimJobs(db, appId, {
      lane,
      now: clock.now(),
      leaseUntil: new Date(leaseUntilMs),
      limit: most,
      maxCrashes: hasSuspect ? CRASHES_TO_SUSPECT - 1 : CRASHES_TO_PARK,
      crowded,
    })
    const suspects = jobs.filter(isSuspect)
    const unwanted = isStopping ? jobs : suspects.slice(1)
    // Returned before anything runs: if the first suspect ended the process, these jobs would count a crash as well.
    for (const job of unwanted) await store.returnJob(db, job)
    const mine = jobs.filter((job) => !unwanted.includes(job))
    for (const job of mine) {
      const entry: HeldJob = { job, abort: new AbortController(), leaseUntilMs, ended: Promise.resolve() }
      held.set(job.id, entry)
      entry.ended = perform(entry)
    }
    started += mine.length
    return mine.length
  }

  async function perform({ job, abort }: HeldJob) {
    const { fence, lane, ...rest } = job
    const isStillHeld = (db: Db) => store.isHeld(db, job)
    const recordProgress = async (db: Db) => {
      if (job.crashes > 0) await store.resetCrashes(db, job)
    }
    const work = { job: rest, fence, signal: abort.signal, isStopping: () => isStopping, isStillHeld, recordProgress }
    const handler = handlerOf(job.name)
    const about = { job: job.name, appId: job.appId, id: job.id }
    let settled: Settled | undefined
    try {
      const failure = await runAttempt({ handler, work, abort, unwindMs: timing.unwindMs })
      settled = await whenDatabaseIsBack(
        () => settle({ db, clock, log, random }, job, handler, failure),
        () => isStopping,
      )
      if (settled === 'lost') log.warn(about, 'Ignored outcome of a job that another worker took over')
    } catch (error) {
      log.error({ ...about, reason: (error as Error).message }, 'Could not record the outcome of a job')
    } finally {
      held.delete(job.id)
      // Apps that were turned away come before the app that was just served.
      rota.release(job)
      if (settled === 'again') rota.requeue(job)
      wake([])
    }
  }

  async function beat() {
    const groups = Map.groupBy(held.values(), ({ job }) => job.appId)
    await Promise.all([...groups].map(([appId, group]) => renew(appId, group)))
  }

  async function renew(appId: AppId, group: HeldJob[]) {
    const leaseUntilMs = clock.leaseMs() + timing.leaseMs
    try {
      const holds = group.map(({ job: { id, fence } }) => ({ appId, id, fence }))
      const renewed = await store.renewLeases(db, appId, holds, new Date(leaseUntilMs))
      const ids = new Set(renewed.map(({ id }) => id))
      for (const entry of group) if (ids.has(entry.job.id)) entry.leaseUntilMs = leaseUntilMs
      lose(group.filter(({ job }) => !ids.has(job.id)))
    } catch (error) {
      log.warn({ reason: (error as Error).message }, 'Could not renew job leases')
      // Cut off from the database, this worker cannot know whether others still see its lease.
      lose(group.filter((entry) => entry.leaseUntilMs <= clock.leaseMs()))
    }
  }

  const lose = (entries: HeldJob[]) => {
    for (const { abort } of entries) abort.abort(new LeaseLost('the lease on the job was lost'))
  }

  async function wakeDue() {
    if (isStopping) return
    const apps = await sweep.sweepAsLeader()
    wake(apps)
    if (apps.length > 0) await store.notifyApps(db, apps)
  }

  /** Runs at once and then periodically, never twice at the same time, whatever happens to the database. */
  function repeat(run: () => Promise<void>, everyMs: number) {
    let isBusy = false
    const once = async () => {
      if (isBusy) return
      isBusy = true
      const chore = run().catch((error) => log.warn({ reason: error.message }, 'Queue maintenance failed; retrying'))
      chores.add(chore)
      await chore
      chores.delete(chore)
      isBusy = false
    }
    timers.push(setInterval(once, everyMs))
    void once()
  }

  async function idle() {
    await filling?.catch(() => {})
    await Promise.all([...chores, ...[...held.values()].map(({ ended }) => ended)])
  }

  async function within(milliseconds: number, promise: Promise<void>) {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds)
    })
    await Promise.race([promise, late])
    clearTimeout(timer)
  }

  return {
    start() {
      const noteGap = () => log.debug('Listening for jobs; the sweep finds earlier notifications')
      listener?.on(store.JOBS_CHANNEL, (payload) => wake([store.parseWakeUp(payload)]), noteGap)
      repeat(beat, timing.heartbeatMs)
      repeat(wakeDue, timing.sweepMs)
    },
    async stop() {
      isStopping = true
      await within(timing.finishMs, idle())
      for (const { abort } of held.values()) abort.abort(new Stopping('the server is stopping'))
      await within(timing.unwindMs + HAND_BACK_MS, idle())
      for (const timer of [...timers, ...alarms.values()]) clearInterval(timer)
      const left = sweep
        .resign()
        .catch((error) => log.debug({ reason: error.message }, 'Could not resign as sweep leader'))
      await within(LEAVE_MS, left)
    },
    async runDue() {
      const before = started
      for (let last = -1; last !== started && !isStopping; ) {
        last = started
        rota.add((await sweep.sweep()).map(({ appId }) => appId))
        await fill()
        while (held.size > 0) await idle()
      }
      return started - before
    },
    running: () => held.size,
  }
}
