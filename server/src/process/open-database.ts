// Opens the configured database: the one that DATABASE_URL names, or the embedded PostgreSQL in the data folder.

import pg, { type ClientConfig } from 'pg'
import type { Log } from '../lib/log.ts'
import { type Config, ConfigError } from '../settings/config.ts'
import { type ConnectionBudgetSettings, connectionBudget, shareConnections } from '../settings/share-connections.ts'
import { findUnsafeSettings, readVersion } from '../storage/check-durability.ts'
import { type Connections, countConnections } from '../storage/count-connections.ts'
import type { Db } from '../storage/db.ts'
import { openEpoch } from '../storage/embedded/epoch.ts'
import { keepReserve } from '../storage/embedded/reserve.ts'
import { startEmbedded } from '../storage/embedded.ts'

export type OpenDatabase = {
  connection: ClientConfig
  /** Set for the embedded database. Its folder's lock admits one server at a time, so that server has a fixed id. */
  nodeId?: string
  /** Tells the data folder from a copy of it. */
  epoch?: string
  /** False while its disk is nearly full. */
  mayWrite?: () => boolean
  close(): Promise<void>
}

const ONLY_NODE_ID = '00000000-0000-4000-8000-000000000001'

export const OLDEST_VERSION = 15

export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>, log: Log): Promise<OpenDatabase> {
  if (config.databaseUrl !== undefined) {
    const connection = { connectionString: config.databaseUrl, connectionTimeoutMillis: 5_000 }
    await knock(connection)
    return { connection, close: async () => {} }
  }
  const embedded = await startEmbedded({ dataDir: config.dataDir, log })
  const reserve = await keepReserve(config.dataDir, log)
  const epoch = await openEpoch(config.dataDir)
  return {
    connection: embedded.connection,
    nodeId: ONLY_NODE_ID,
    epoch,
    mayWrite: reserve.mayWrite,
    close: () => reserve.close().finally(() => embedded.stop()),
  }
}

/**
 * Later connection failures are outages to wait out; at start they are mistakes in DATABASE_URL, and the driver's error
 * says which.
 */
async function knock(connection: ClientConfig) {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  await client.end()
}

/** Refuses to serve a database that may lose acknowledged writes, or that is too old. */
export async function refuseUnsafe(db: Db, config: Pick<Config, 'unsafeDurability'>) {
  const version = await readVersion(db)
  if (version < OLDEST_VERSION)
    throw new ConfigError(`the database is PostgreSQL ${version}; Carillon needs ${OLDEST_VERSION} or newer`)
  const unsafe = await findUnsafeSettings(db)
  if (unsafe.length > 0 && !config.unsafeDurability)
    throw new ConfigError(
      `the database has ${unsafe.join(' and ')} off, so a crash could lose acknowledged writes; switch it on, or set UNSAFE_DURABILITY=true if that does not matter`,
    )
}

/** Refuses to start when there can never be enough connections; only warns when there may be too few at times. */
export async function checkConnections(db: Db, settings: ConnectionBudgetSettings, log: Log) {
  shareConnections(settings)
  const advice = describeShortage(await countConnections(db), connectionBudget(settings))
  if (advice?.isCertain) throw new ConfigError(advice.says)
  if (advice) log.warn(advice.says)
}

/** `used` includes the connection that asks, which is closed before the others are opened. */
export function describeShortage({ most, used }: Connections, needed: number) {
  const wayOut = 'raise max_connections in postgresql.conf, or lower DATABASE_CONNECTIONS'
  if (needed > most)
    return {
      isCertain: true,
      says: `this server opens up to ${needed} connections, and PostgreSQL allows ${most}; ${wayOut}`,
    }
  const others = used - 1
  if (needed + others <= most) return undefined
  const says = `this server opens up to ${needed} connections, others have ${others} open, and PostgreSQL allows ${most}: ${needed + others} are needed; ${wayOut}`
  return { isCertain: false, says }
}
