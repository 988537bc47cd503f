// The role that answers requests: routes, rate limits, and the port that receives email reports.

import { setTimeout as pause } from 'node:timers/promises'
import { createKeyLookup } from '../apps/keys/lookup.ts'
import { createKeyUsage } from '../apps/keys/usage.ts'
import { createHttpServer } from '../http/server.ts'
import { endDryRuns } from '../journeys/dry-run/simulate.ts'
import { newId } from '../lib/ids.ts'
import { reachableAddress } from '../lib/own-address.ts'
import { createLimiter } from '../limits/limiter.ts'
import type { Config } from '../settings/config.ts'
import type { Db } from '../storage/db.ts'
import { guardWrites } from '../storage/guard-writes.ts'
import { createMerger } from '../storage/merge.ts'
import { keepStatisticsFresh } from '../storage/refresh-statistics.ts'
import { sql } from '../storage/sql.ts'
import { createRenderer } from '../templates/render/renderer.ts'
import { createDomains } from './domains.ts'
import { openMailListener } from './inbound-email.ts'
import type { Infrastructure } from './infrastructure.ts'
import { mergeSlots } from './pools.ts'
import { allRoutes } from './routes.ts'

const MEGABYTE = 1024 * 1024

export type RunningApi = {
  /** The address that the server listens on. */
  address: string
  /** The port that receives email; undefined if there is none. */
  mailPort: number | undefined
  /** From now on /ready answers 503, so that a load balancer sends no more requests here. */
  startDraining(): void
}

export async function startApi(infrastructure: Infrastructure, resources: AsyncDisposableStack): Promise<RunningApi> {
  const { config, clock, log, nodeId, pools, listener, metrics, mayWrite } = infrastructure
  const db = guardWrites(pools.db, mayWrite)
  const merger = createMerger({ slots: mergeSlots(infrastructure.shares.requests) })
  const statistics = keepStatisticsFresh(pools.workerDb, () => merger.stats().requests, log)
  resources.defer(() => statistics.stop())
  const limits = createLimiter({
    db: pools.limitsDb,
    clock,
    profile: config.limits,
    log,
    listener,
    ...(nodeId !== undefined && { nodeId }),
  })
  const renderer = createRenderer({ log, clock, processes: config.renderProcesses })
  resources.defer(() => renderer.close())
  const keyUsage = createKeyUsage({ db, log })
  resources.defer(() => keyUsage.close())

  let baseUrl = config.publicUrl?.replace(/\/+$/, '')
  const domains = createDomains({
    ...infrastructure,
    db,
    newId,
    merger,
    renderer,
    counting: pools.counting,
    baseUrl: () => baseUrl ?? '',
    keyUsage,
  })
  resources.defer(() => domains.email.rsaKeys.close())
  resources.defer(() => endDryRuns(domains.dryRuns))

  metrics.gauge('carillon_database_connections', 'Connections to the database.', pools.stats)
  metrics.gauge('carillon_merged_requests', 'Requests merged into statements so far.', () => merger.stats())
  metrics.gauge('carillon_rendering', 'Rendering processes, calls that wait for one, processes ended.', () =>
    renderer.stats(),
  )
  const http = createHttpServer({
    routes: allRoutes(domains),
    keys: createKeyLookup({ db: pools.db, clock, listener, recordUse: keyUsage.record }),
    limits,
    clock,
    log,
    metrics,
    isReady: () => answers(pools.db),
    trustProxy: config.trustProxy,
    metricsToken: config.metricsToken,
    baseUrl: () => baseUrl ?? '',
    bodyBytes: config.requestBodyMb * MEGABYTE,
    linger: () => pause((config.drainSeconds ?? defaultDrainSeconds(config)) * 1_000),
  })
  await limits.join()
  resources.defer(() => limits.leave())
  resources.defer(() => http.close())
  const address = await http.listen({ port: config.port, host: config.host })
  baseUrl ??= reachableAddress(address)
  domains.email.rsaKeys.fill()

  const { mailListen } = config
  const name = config.providers.email.helo
  const mail = mailListen && (await openMailListener(domains.feedback, { mailListen, name }, log))
  if (mail) resources.defer(() => mail.close())
  log.info({ address }, 'Accepting requests')
  return { address, mailPort: mail?.port, startDraining: http.startDraining }
}

const answers = (db: Db): Promise<boolean> =>
  db.query(sql`select 1`).then(
    () => true,
    () => false,
  )

/** With an external database, other servers may share the load, so a load balancer needs time to notice. */
const defaultDrainSeconds = ({ databaseUrl }: Pick<Config, 'databaseUrl'>) => (databaseUrl === undefined ? 0 : 5)
