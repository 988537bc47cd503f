// A pool shared by apps: each gets at most all of its connections but one, and they take turns.

import { RateLimited } from '../lib/errors.ts'
import { createFairSlots, type FairSlots, QueueFull } from '../lib/fair-slots.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db, Pool } from './db.ts'

export type SharedPool = {
  /**
   * Gives `run` a connection when it is the app's turn. When the signal is aborted, waiting work is dropped and running
   * work is ended.
   */
  use<Result>(appId: AppId, run: (db: Db) => Promise<Result>, signal?: AbortSignal): Promise<Result>
}

export type SharedPoolOptions = {
  pool: Pool
  connections: number
  /** Beyond this number, an app's callers are told to retry later. Defaults to no limit. */
  maxWaitingPerApp?: number
  maxWaitMs?: number
}

/** Most waiting work is done within this time. */
const RETRY_AFTER_SECONDS = 5

export function createSharedPool(options: SharedPoolOptions): SharedPool & Pick<FairSlots, 'stats'> {
  const { pool, connections, maxWaitingPerApp, maxWaitMs } = options
  const slots = createFairSlots({
    slots: connections,
    ...(maxWaitingPerApp !== undefined && { maxWaitingPerOwner: maxWaitingPerApp }),
  })

  return {
    async use(appId, run, signal) {
      const waiting = new AbortController()
      const stopWaiting = () => waiting.abort(signal?.reason)
      const deadline =
        maxWaitMs === undefined ? undefined : setTimeout(() => waiting.abort(tooMany(connections)), maxWaitMs)
      signal?.addEventListener('abort', stopWaiting)
      if (signal?.aborted) stopWaiting()
      const begin = () => {
        clearTimeout(deadline)
        return run(signal ? pool.until(signal) : pool)
      }
      try {
        return await slots.run(appId, begin, waiting.signal)
      } catch (error) {
        throw error instanceof QueueFull ? tooMany(connections) : error
      } finally {
        clearTimeout(deadline)
        signal?.removeEventListener('abort', stopWaiting)
      }
    },
    stats: slots.stats,
  }
}

const tooMany = (connections: number) =>
  new RateLimited(
    RETRY_AFTER_SECONDS,
    `Too many audiences of this app are being counted: at most ${Math.max(1, connections - 1)} run at once and few more wait.`,
  )
