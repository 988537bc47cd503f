// The rendering processes of this server. Apps take turns according to the time that they have used. The last process
// is reserved for direct work (direct messages, previews, checks) of apps within their budget, so that bulk work and
// slow templates never occupy it.

import { availableParallelism } from 'node:os'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { RateLimited, unavailable } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { createAppUsage, MAX_RESERVED_USAGE_MS } from './app-usage.ts'
import type { RenderCall } from './render-call.ts'
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts'
import { MAX_BATCH_STEPS } from './worker-protocol.ts'

/** The number of calls of one app that may wait for a process. More could not be rendered in time. */
const MAX_WAITING = 200
/** One for general work, and the reserved one. */
export const MIN_PROCESSES = 2
/** Processes that are idle for this long are stopped, except one. */
const MAX_IDLE_MS = 60_000

export type RenderPoolOptions = {
  /** The maximum number of processes, at least two. Defaults to the number of cores. */
  processes?: number | undefined
  log?: Log
  clock?: Pick<Clock, 'leaseMs'>
  startProcess?: () => Promise<WorkerProcess>
}

export type RenderPool = {
  /** Adds a call, whose own promise resolves to its results. Throws when the app has too many calls waiting. */
  add(call: RenderCall): void
  stopIdle(): void
  stats(): { processes: number; waiting: number; killed: number }
  close(): Promise<void>
}

/** The calls of one app. A call is waiting while any of its steps is unassigned, even when others are running. */
type AppCalls = { direct: RenderCall[]; bulk: RenderCall[]; running: Set<{ call: RenderCall; startedMs: number }> }

export function createRenderPool(options: RenderPoolOptions): RenderPool {
  const { log, clock = systemClock(), startProcess = startWorkerProcess } = options
  const size = Math.max(MIN_PROCESSES, options.processes ?? availableParallelism())
  const budget = createAppUsage(clock)
  const apps = new Map<AppId, AppCalls>()
  const ready = new Set<WorkerProcess>()
  const idle: { worker: WorkerProcess; sinceMs: number }[] = []
  let starting = 0
  /** The number of running batches that may not use the reserved process. */
  let ordinary = 0
  let killed = 0
  let isClosed = false
  const idleTimer = setInterval(stopIdle, MAX_IDLE_MS).unref()

  function usedMs(appId: AppId, { running }: AppCalls): number {
    const nowMs = clock.leaseMs()
    return [...running].reduce((sum, { startedMs }) => sum + nowMs - startedMs, budget.usedMs(appId))
  }

  const isUrgent = (call: RenderCall, appUsedMs: number) =>
    call.lane === 'direct' && !call.isSlow() && appUsedMs <= MAX_RESERVED_USAGE_MS

  /** Chooses, among the calls that may run now, one of the app that has used the least time. */
  function chooseCall(): { call: RenderCall; isUrgent: boolean } | undefined {
    let chosen: { call: RenderCall; isUrgent: boolean } | undefined
    let leastMs = Number.POSITIVE_INFINITY
    for (const [appId, app] of apps) {
      const [call] = app.direct.length > 0 ? app.direct : app.bulk
      // No app may occupy all processes, whatever it renders.
      if (!call || app.running.size >= Math.max(1, ready.size - 1)) continue
      const appUsedMs = usedMs(appId, app)
      if (appUsedMs >= leastMs) continue
      const urgent = isUrgent(call, appUsedMs)
      if (!urgent && ordinary >= ready.size - 1) continue
      chosen = { call, isUrgent: urgent }
      leastMs = appUsedMs
    }
    return chosen
  }

  function dispatch() {
    while (!isClosed) {
      dropDead()
      if (idle.length === 0) break
      const chosen = chooseCall()
      if (!chosen) break
      void runBatch(chosen.call, chosen.isUrgent)
    }
    startMissing()
  }

  async function runBatch(call: RenderCall, urgent: boolean) {
    const { appId, lane } = call
    const app = apps.get(appId) as AppCalls
    const { worker } = idle.pop() as (typeof idle)[number]
    const started = { call, startedMs: clock.leaseMs() }
    app[lane].shift()
    const slice = call.takeBatch()
    // Calls of one app take turns as well, and the app moves behind others with equal usage.
    if (call.waitingSteps() > 0) app[lane].push(call)
    apps.delete(appId)
    apps.set(appId, app)
    app.running.add(started)
    if (!urgent) ordinary++
    const outcome = await worker.run(slice)
    if (!urgent) ordinary--
    app.running.delete(started)
    budget.charge(appId, clock.leaseMs() - started.startedMs)
    if (worker.isAlive()) idle.push({ worker, sinceMs: clock.leaseMs() })
    else ready.delete(worker)
    if (isClosed) return call.fail(unavailable())
    if (outcome.endReason !== undefined) {
      killed++
      log?.warn({ appId, reason: outcome.endReason }, 'a rendering process was ended because of a template')
      void start(appId)
    }
    call.settle(slice, outcome)
    // Steps that the process did not finish wait again. A template that was given up leaves no steps waiting.
    const others = app[lane].filter((other) => other !== call)
    if (call.waitingSteps() === 0) app[lane] = others
    else if (others.length === app[lane].length) app[lane] = [call, ...others]
    if (app.running.size + app.direct.length + app.bulk.length === 0) apps.delete(appId)
    dispatch()
  }

  /** Removes processes that ended while idle. */
  function dropDead() {
    for (const entry of idle.filter(({ worker }) => !worker.isAlive())) {
      idle.splice(idle.indexOf(entry), 1)
      ready.delete(entry.worker)
    }
  }

  function startMissing() {
    if (isClosed || ready.size + starting >= size) return
    let wanted = 0
    let needsSpare = ordinary > 0
    for (const [appId, app] of apps) {
      const waiting = [...app.direct, ...app.bulk]
      needsSpare ||= waiting.some((call) => !isUrgent(call, usedMs(appId, app)))
      // Starting a process takes a while, so a few steps finish sooner in those that already run.
      for (const call of new Set([...waiting, ...[...app.running].map(({ call }) => call)]))
        wanted += Math.ceil(call.unsettledSteps() / MAX_BATCH_STEPS)
    }
    if (needsSpare) wanted++
    while (ready.size + starting < Math.min(size, wanted)) void start()
  }

  /**
   * `causedBy` is the app that is charged for the start, because its template caused the previous process to be killed.
   */
  async function start(causedBy?: AppId) {
    const beganMs = clock.leaseMs()
    starting++
    try {
      const worker = await startProcess()
      if (isClosed) return worker.close()
      ready.add(worker)
      idle.push({ worker, sinceMs: clock.leaseMs() })
    } catch (error) {
      log?.error({ reason: (error as Error).message }, 'templates cannot be rendered')
      failWaiting()
    } finally {
      starting--
      if (causedBy) budget.charge(causedBy, clock.leaseMs() - beganMs)
    }
    dispatch()
  }

  function failWaiting() {
    for (const [appId, app] of apps) {
      for (const call of [...app.direct.splice(0), ...app.bulk.splice(0)]) call.fail(unavailable())
      if (app.running.size === 0) apps.delete(appId)
    }
  }

  function stopIdle() {
    const sinceMs = clock.leaseMs() - MAX_IDLE_MS
    while (ready.size > 1 && idle[0] && idle[0].sinceMs <= sinceMs) {
      const { worker } = idle.shift() as (typeof idle)[number]
      ready.delete(worker)
      worker.close()
    }
  }

  return {
    add(call) {
      if (isClosed) throw unavailable()
      const app = apps.get(call.appId) ?? { direct: [], bulk: [], running: new Set() }
      if (app.direct.length + app.bulk.length >= MAX_WAITING) throw new RateLimited(1)
      app[call.lane].push(call)
      apps.set(call.appId, app)
      dispatch()
    },
    stopIdle,
    stats: () => ({
      processes: ready.size + starting,
      waiting: [...apps.values()].reduce((sum, { direct, bulk }) => sum + direct.length + bulk.length, 0),
      killed,
    }),
    async close() {
      isClosed = true
      clearInterval(idleTimer)
      failWaiting()
      for (const worker of ready) worker.close()
    },
  }
}
