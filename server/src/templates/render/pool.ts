// The rendering threads of this process, started when they are first needed. Apps take turns, so that one with slow templates slows
// down nobody but itself.

import { availableParallelism } from 'node:os'
import { RateLimited, unavailable } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { type SliceOutcome, startThread, type Thread } from './thread.ts'
import type { Slice } from './work.ts'

/** Slices of one app that may wait for a thread; more than this is more than can be rendered. */
const MAX_WAITING = 200

type Waiting = { slice: Slice; resolve: (outcome: SliceOutcome) => void; reject: (error: unknown) => void }

export type RenderPool = {
  run(appId: AppId, slice: Slice): Promise<SliceOutcome>
  stats(): { threads: number; waiting: number; killed: number }
  close(): Promise<void>
}

export function createRenderPool(size = Math.max(1, availableParallelism() - 1)): RenderPool {
  const lanes = new Map<AppId, Waiting[]>()
  const idle: Thread[] = []
  const all = new Set<Thread>()
  /** Threads running, idle or starting. */
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

  async function serve({ slice, resolve, reject }: Waiting) {
    let thread = idle.pop()
    if (!thread) count++
    try {
      thread ??= await start()
      const outcome = await thread.run(slice)
      if (outcome.killedAt !== undefined) killed++
      resolve(outcome)
    } catch (error) {
      reject(error)
    }
    if (thread?.isAlive()) idle.push(thread)
    else {
      if (thread) all.delete(thread)
      count--
    }
    pump()
  }

  async function start(): Promise<Thread> {
    const thread = await startThread()
    all.add(thread)
    if (!isClosed) return thread
    await thread.close()
    throw unavailable()
  }

  return {
    run(appId, slice) {
      if (isClosed) return Promise.reject(unavailable())
      const queue = lanes.get(appId) ?? []
      if (queue.length >= MAX_WAITING) return Promise.reject(new RateLimited(1))
      return new Promise((resolve, reject) => {
        queue.push({ slice, resolve, reject })
        lanes.set(appId, queue)
        pump()
      })
    },
    stats: () => ({
      threads: count,
      waiting: [...lanes.values()].reduce((sum, queue) => sum + queue.length, 0),
      killed,
    }),
    async close() {
      isClosed = true
      for (const queue of lanes.values()) for (const { reject } of queue) reject(unavailable())
      lanes.clear()
      await Promise.all([...all].map((thread) => thread.close()))
    },
  }
}
