// The database connections of a process, by purpose, so that one kind of work never waits for a connection behind
// another.

import type { SystemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { ConnectionShares } from '../settings/share-connections.ts'
import { createPool, type Pool, type PoolOptions } from '../storage/db.ts'
import { createSharedPool, type SharedPool } from '../storage/shared-pool.ts'

export type Pools = {
  /** For API requests. */
  db: Pool
  /** For rate limits. Their statements are short, and a statement that does not end is soon given up. */
  limitsDb: Pool
  /** For background jobs. */
  workerDb: Pool
  /** For direct messages and for the maintenance of the queue, without which no message would start. */
  directDb: Pool
  /** For requests that read every user of an app. */
  counting: SharedPool
  /** For background jobs that find audiences. */
  audiences: SharedPool
  /** Counts by name, for the metrics page. */
  stats(): Record<string, number>
  close(): Promise<void>
}

export type PoolsOptions = {
  connection: PoolOptions['connection']
  shares: ConnectionShares
  log: Log
  clock?: SystemClock
}

const MAX_STATEMENT_MS = { api: 4_000, limits: 2_000, counting: 60_000, worker: 300_000 }
/** A job may wait for a connection behind slow ones; an unreachable database is detected sooner. */
const MAX_JOB_WAIT_MS = 30_000
/**
 * Counting yields to jobs that find audiences, and both yield to everything else, but not so far that they hold up
 * others.
 */
const NICENESS = { audiences: 10, counting: 15 }
/** An app with more counts waiting gets 429. */
const MAX_WAITING_COUNTS = 20

export function openPools({ connection, shares, log, clock }: PoolsOptions): Pools {
  const common = { connection, log, ...(clock && { clock }) }
  const worker = { ...common, statementTimeoutMs: MAX_STATEMENT_MS.worker, connectTimeoutMs: MAX_JOB_WAIT_MS }
  const db = createPool({ ...common, size: shares.requests, statementTimeoutMs: MAX_STATEMENT_MS.api })
  const limitsDb = createPool({
    ...common,
    size: shares.limits,
    statementTimeoutMs: MAX_STATEMENT_MS.limits,
    connectTimeoutMs: MAX_STATEMENT_MS.limits,
  })
  const workerDb = createPool({ ...worker, size: shares.jobs })
  const directDb = createPool({ ...worker, size: shares.direct })
  const countingDb = createPool({
    ...common,
    size: shares.counting,
    statementTimeoutMs: MAX_STATEMENT_MS.counting,
    niceness: NICENESS.counting,
  })
  const audienceDb = createPool({ ...worker, size: shares.audiences, niceness: NICENESS.audiences })
  const counting = createSharedPool({
    pool: countingDb,
    connections: shares.counting,
    maxWaitingPerApp: MAX_WAITING_COUNTS,
    // An unreachable database is detected sooner than this.
    maxWaitMs: MAX_STATEMENT_MS.counting / 2,
  })
  const audiences = createSharedPool({ pool: audienceDb, connections: shares.audiences })
  return {
    db,
    limitsDb,
    workerDb,
    directDb,
    counting,
    audiences,
    stats: () => ({
      ...db.stats(),
      counting: counting.stats().running,
      counting_waiting: counting.stats().waiting,
      audiences: audiences.stats().running,
      audiences_waiting: audiences.stats().waiting,
    }),
    async close() {
      for (const pool of [workerDb, directDb, audienceDb, countingDb, limitsDb, db]) await pool.close()
    },
  }
}

/**
 * How many statements of merged requests are in flight at once: half of the pool, so that other work finds a
 * connection.
 */
export const mergeSlots = (connections: number) => Math.max(1, Math.floor(connections / 2))
