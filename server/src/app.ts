// Composition: what the server is made of, and in which order it starts and stops. Read this first.

import { createKeyLookup } from './apps/key-lookup.ts'
import { createKeyUsage } from './apps/key-usage.ts'
import type { Config } from './config.ts'
import { createEventsContext } from './events/context.ts'
import { createMetrics } from './http/metrics.ts'
import { createHttpServer } from './http/server.ts'
import { allHandlers, allSchedules } from './jobs.ts'
import type { Clock, SystemClock } from './lib/clock.ts'
import { type AppId, newId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { secretBox } from './lib/secrets.ts'
import { createLimiter } from './limits/limiter.ts'
import { createWorker } from './queue/work.ts'
import { allRoutes } from './routes.ts'
import { createSegmentsContext } from './segments/context.ts'
import { createPool, type PoolOptions } from './storage/db.ts'
import { guardWrites } from './storage/guard-writes.ts'
import { createListener } from './storage/listen.ts'
import { createMerger } from './storage/merge.ts'
import { keepStatisticsFresh } from './storage/refresh-statistics.ts'
import { sql } from './storage/sql.ts'
import { createTemplatesContext } from './templates/context.ts'
import { createRenderer } from './templates/render/renderer.ts'
import { createUsersContext } from './users/context.ts'
import { sumPlayerCounts } from './users/store.ts'

export type AppOptions = {
  config: Pick<Config, 'port' | 'host' | 'limits' | 'role' | 'trustProxy' | 'metricsToken' | 'eventRetentionDays'>
  connection: PoolOptions['connection']
  /** What the credentials of providers are sealed with; the same on every server of a database. */
  secretKey: string
  clock: Clock & Partial<SystemClock>
  log: Log
  /** An id that no other process can have, so that a server killed and started again need not wait for its own old lease. */
  nodeId?: string | undefined
  /** False while the disk is nearly full: reads and limits go on, everything else that would write is refused. */
  mayWrite?: (() => boolean) | undefined
}

export type RunningApp = {
  /** Where it listens; undefined for a worker. */
  address: string | undefined
  /** Stop accepting, finish what is under way, give back what is leased. */
  close(): Promise<void>
}

/** Statements of merged requests in flight at once; half of the pool, so that everything else finds a connection. */
const MERGE_SLOTS = 5
const MAX_STATEMENT_MS = { api: 4_000, counting: 60_000, worker: 300_000 }

export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { config, connection, secretKey, clock, log, nodeId, mayWrite = () => true } = options
  const anchored = isAnchored(clock) ? { clock } : {}
  const db = createPool({ connection, log, statementTimeoutMs: MAX_STATEMENT_MS.api, ...anchored })
  const workerDb = createPool({ connection, log, size: 5, statementTimeoutMs: MAX_STATEMENT_MS.worker, ...anchored })
  // Counting an audience looks at every user of an app. It may take its time, and must not take the others' connections.
  const countingDb = createPool({
    connection,
    log,
    size: 3,
    statementTimeoutMs: MAX_STATEMENT_MS.counting,
    // Who comes while three are counting waits for a turn. Whether the database answers at all is found out before.
    connectTimeoutMs: MAX_STATEMENT_MS.counting / 2,
    ...anchored,
  })
  const listener = createListener(connection, log)
  const merger = createMerger({ slots: MERGE_SLOTS })
  const statistics = keepStatisticsFresh(workerDb, () => merger.stats().requests, log)
  const closers: (() => Promise<unknown> | undefined)[] = [
    async () => statistics.stop(),
    () => listener.close(),
    () => workerDb.close(),
    () => countingDb.close(),
    () => db.close(),
  ]
  const close = async () => {
    for (const closer of closers.splice(0)) await closer()
  }

  try {
    const address = config.role === 'worker' ? undefined : await serve()
    if (config.role !== 'api') work()
    return { address, close }
  } catch (error) {
    await close()
    throw error
  }

  async function serve(): Promise<string> {
    const limits = createLimiter({
      db,
      clock,
      profile: config.limits,
      log,
      listener,
      ...(nodeId !== undefined && { nodeId }),
    })
    const metrics = createMetrics()
    metrics.gauge('carillon_database_connections', 'Connections to the database.', () => db.stats())
    metrics.gauge('carillon_merged_requests', 'Requests merged into statements so far.', () => merger.stats())
    const renderer = createRenderer({ log })
    metrics.gauge('carillon_rendering', 'Rendering processes, slices that wait for one, processes ended.', () =>
      renderer.stats(),
    )
    const parts = { db: guardWrites(db, mayWrite), clock, merger, newId }
    const users = createUsersContext(parts)
    const events = createEventsContext({ ...parts, reader: users.reader, retentionDays: config.eventRetentionDays })
    const segments = createSegmentsContext({ ...parts, reader: users.reader, countingDb })
    const templates = createTemplatesContext({ ...parts, renderer, users: users.reader })
    const usage = createKeyUsage({ db: parts.db, log })
    const countPlayers = (appIds: readonly AppId[]) => sumPlayerCounts(db, appIds)
    const apps = { db: parts.db, clock, secrets: secretBox(secretKey), usage, countPlayers }
    const http = createHttpServer({
      routes: allRoutes({ apps, users, events, segments, templates }),
      keys: createKeyLookup({ db, clock, listener, noteUse: usage.note }),
      limits,
      clock,
      log,
      metrics,
      isReady: () =>
        db.query(sql`select 1`).then(
          () => true,
          () => false,
        ),
      trustProxy: config.trustProxy,
      metricsToken: config.metricsToken,
    })
    await limits.join()
    closers.unshift(
      () => http.close(),
      () => usage.close(),
      () => renderer.close(),
      () => limits.leave(),
      async () => metrics.close(),
    )
    return http.listen({ port: config.port, host: config.host })
  }

  function work() {
    const context = { db: guardWrites(workerDb, mayWrite), clock, eventRetentionDays: config.eventRetentionDays }
    const worker = createWorker({
      db: context.db,
      clock,
      log,
      listener,
      handlers: allHandlers(context),
      schedules: allSchedules(context),
    })
    worker.start()
    closers.unshift(() => worker.stop())
  }
}

const isAnchored = (clock: Clock & Partial<SystemClock>): clock is SystemClock => clock.anchor !== undefined
