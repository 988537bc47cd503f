// The connections of a process to the database, by what they are for: work of one kind never waits for a connection behind another.

import type { SystemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { ConnectionShares } from '../settings/share-connections.ts'
import { createPool, type Pool, type PoolOptions } from '../storage/db.ts'
import { createSharedPool, type SharedPool } from '../storage/shared-pool.ts'

export type Pools = {
  /** Requests. */
  db: Pool
  /** Limits of requests. Their statements are short, and nobody waits long for one that does not end. */
  limitsDb: Pool
  /** Background jobs. */
  workerDb: Pool
  /** Direct messages, and the upkeep of the queue, without which none would begin. */
  directDb: Pool
  /** Requests that look at every user of an app. */
  counting: SharedPool
  /** Background jobs that look for audiences. */
  audiences: SharedPool
  /** For the metrics page, by name. */
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
/** A job can wait for a connection behind others that take long; a database that is away says so sooner. */
const MAX_JOB_WAIT_MS = 30_000
/** Counts come after messages that look for their audience, and both after all else; neither so far that it holds others up. */
const NICENESS = { audiences: 10, counting: 15 }
/** An app that asks for more at once is told to come back: 429. */
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
    // Whether the database answers at all is found out before.
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

/** Statements of merged requests in flight at once: half of the pool, so that everything else finds a connection. */
export const mergeSlots = (connections: number) => Math.max(1, Math.floor(connections / 2))
