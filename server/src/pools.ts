// The connections of a process to the database, by what they are for: work of one kind never waits for a connection behind another.

import type { Config } from './config.ts'
import type { SystemClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { createPool, type Pool, type PoolOptions } from './storage/db.ts'
import { createSharedPool, type SharedPool } from './storage/shared-pool.ts'

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
  config: Pick<Config, 'countingConnections' | 'audienceConnections'>
  log: Log
  clock?: SystemClock
}

const MAX_STATEMENT_MS = { api: 4_000, limits: 2_000, counting: 60_000, worker: 300_000 }
const LIMITS_CONNECTIONS = 2
const WORKER_CONNECTIONS = 10
const DIRECT_CONNECTIONS = 6
/** Counts come after messages that look for their audience, and both after all else; neither so far that it holds others up. */
const NICENESS = { audiences: 10, counting: 15 }
/** An app that asks for more at once is told to come back: 429. */
const MAX_WAITING_COUNTS = 20

export function openPools({ connection, config, log, clock }: PoolsOptions): Pools {
  const common = { connection, log, ...(clock && { clock }) }
  const worker = { ...common, statementTimeoutMs: MAX_STATEMENT_MS.worker }
  const { countingConnections, audienceConnections } = config
  const db = createPool({ ...common, statementTimeoutMs: MAX_STATEMENT_MS.api })
  const limitsDb = createPool({
    ...common,
    size: LIMITS_CONNECTIONS,
    statementTimeoutMs: MAX_STATEMENT_MS.limits,
    connectTimeoutMs: MAX_STATEMENT_MS.limits,
  })
  const workerDb = createPool({ ...worker, size: WORKER_CONNECTIONS })
  const directDb = createPool({ ...worker, size: DIRECT_CONNECTIONS })
  const countingDb = createPool({
    ...common,
    size: countingConnections,
    statementTimeoutMs: MAX_STATEMENT_MS.counting,
    niceness: NICENESS.counting,
  })
  const audienceDb = createPool({ ...worker, size: audienceConnections, niceness: NICENESS.audiences })
  const counting = createSharedPool({
    pool: countingDb,
    connections: countingConnections,
    maxWaitingPerApp: MAX_WAITING_COUNTS,
    // Whether the database answers at all is found out before.
    maxWaitMs: MAX_STATEMENT_MS.counting / 2,
  })
  const audiences = createSharedPool({ pool: audienceDb, connections: audienceConnections })
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
