// The rendering processes of this server, started when they are first needed. Apps take turns, so that one with slow templates slows
// down nobody but itself.

import { availableParallelism } from 'node:os'
import { RateLimited, unavailable } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Slice } from './work.ts'
import { type SliceOutcome, startWorkerProcess, type WorkerProcess } from './worker-process.ts'

/** Slices of one app that may wait for a process; more than this is more than can be rendered. */
const MAX_WAITING = 200

type Waiting = {
  appId: AppId
  slice: Slice
  resolve: (outcome: SliceOutcome) => void
  reject: (error: unknown) => void
}

export type RenderPoolOptions = { processes?: number; log?: Log }

export type RenderPool = {
  run(appId: AppId, slice: Slice): Promise<SliceOutcome>
  stats(): { processes: number; waiting: number; killed: number }
  close(): Promise<void>
}

export function createRenderPool({ processes, log }: RenderPoolOptions): RenderPool {
  const size = processes ?? Math.max(1, availableParallelism() - 1)
  const lanes = new Map<AppId, Waiting[]>()
  const idle: WorkerProcess[] = []
  const all = new Set<WorkerProcess>()
  /** Processes running, idle or starting. */
  let count = 0
  let killed = 0
  let isClosed = false

  function next(): Waiting | undefined {
    const [lane] = lanes
    if (!lane) return undefined
    const [appId, queue] = lane
    const waiting = queue.shift()
    // To the end of the round.
    lanes.delete(appId)
    if (queue.length > 0) lanes.set(appId, queue)
    return waiting
  }

  function pump() {
    while (lanes.size > 0 && (idle.length > 0 || count < size)) {
      const waiting = next()
      if (waiting) void serve(waiting)
    }
  }

  async function serve({ appId, slice, resolve, reject }: Waiting) {
    let worker = idle.pop()
    if (!worker) count++
    try {
      worker ??= await start()
      const outcome = await worker.run(slice)
      if (outcome.because !== undefined) {
        killed++
        log?.warn({ appId, reason: outcome.because }, 'a template was ended')
      }
      resolve(outcome)
    } catch (error) {
      reject(error)
    }
    if (worker?.isAlive()) idle.push(worker)
    else {
      if (worker) all.delete(worker)
      count--
    }
    pump()
  }

  async function start(): Promise<WorkerProcess> {
    const worker = await startWorkerProcess().catch((error: Error) => {
      log?.error({ reason: error.message }, 'templates cannot be rendered')
      throw unavailable()
    })
    all.add(worker)
    if (!isClosed) return worker
    worker.close()
    throw unavailable()
  }

  return {
    run(appId, slice) {
      if (isClosed) return Promise.reject(unavailable())
      const queue = lanes.get(appId) ?? []
      if (queue.length >= MAX_WAITING) return Promise.reject(new RateLimited(1))
      return new Promise((resolve, reject) => {
        queue.push({ appId, slice, resolve, reject })
        lanes.set(appId, queue)
        pump()
      })
    },
    stats: () => ({
      processes: count,
      waiting: [...lanes.values()].reduce((sum, queue) => sum + queue.length, 0),
      killed,
    }),
    async close() {
      isClosed = true
      for (const queue of lanes.values()) for (const { reject } of queue) reject(unavailable())
      lanes.clear()
      for (const worker of all) worker.close()
    },
  }
}
