// Opens the configured database for a command, whether a server is running on it or not.

import pg from 'pg'
import { type SystemClock, systemClock } from '../lib/clock.ts'
import { createLog } from '../lib/log.ts'
import { type OpenDatabase, openDatabase } from '../process/open-database.ts'
import type { Config } from '../settings/config.ts'
import { createPool, type Db } from '../storage/db.ts'
import { connectEmbedded, hasDatabase } from '../storage/embedded/attach.ts'
import { migrate, pendingMigrations, readMigrations } from '../storage/migrate.ts'
import { sql } from '../storage/sql.ts'

export type Store = { db: Db; clock: SystemClock }
type StoreOptions = {
  /** The command may be the first one ever run, so it creates the database and its tables. */
  begins?: boolean
  statementTimeoutMs?: number
}

const STATEMENT_TIMEOUT_MS = 60_000

export async function reachDatabase(config: Config): Promise<OpenDatabase> {
  // Commands report their own success, so info messages are not logged.
  const log = createLog(config.logLevel === 'info' ? 'warn' : config.logLevel)
  return config.databaseUrl === undefined
    ? connectEmbedded({ dataDir: config.dataDir, log })
    : openDatabase(config, log)
}

export async function withDatabase<Result>(
  config: Config,
  run: (connection: pg.ClientConfig) => Promise<Result>,
): Promise<Result> {
  const database = await reachDatabase(config)
  try {
    return await run(database.connection)
  } finally {
    await database.close()
  }
}

/** For commands that need the tables in this version's schema. */
export async function withStore<Result>(
  config: Config,
  run: (store: Store) => Promise<Result>,
  { begins = false, statementTimeoutMs = STATEMENT_TIMEOUT_MS }: StoreOptions = {},
): Promise<Result> {
  if (!begins && config.databaseUrl === undefined && !(await hasDatabase(config.dataDir)))
    throw new Error(
      `there is no database in ${config.dataDir} yet; start the server, run "carillon org create", or see that DATA_DIR is right`,
    )
  return withDatabase(config, async (connection) => {
    const clock = systemClock()
    await checkSchema(connection, clock, begins)
    return withPool(connection, clock, statementTimeoutMs, (db) => run({ db, clock }))
  })
}

export async function withPool<Result>(
  connection: pg.ClientConfig,
  clock: SystemClock,
  statementTimeoutMs: number,
  run: (db: Db) => Promise<Result>,
): Promise<Result> {
  const db = createPool({ connection, clock, size: 2, statementTimeoutMs, connectTimeoutMs: 10_000 })
  try {
    // The first statement synchronizes the clock with the database's; commands may need the time before their first
    // query.
    await db.query(sql`select 1`)
    return await run(db)
  } finally {
    await db.close()
  }
}

export type SchemaState = { pending: string[]; isEmpty: boolean }

/** Throws when the database belongs to a newer version. */
export async function lookAtSchema(connection: pg.ClientConfig): Promise<SchemaState> {
  const client = new pg.Client({ ...connection, application_name: 'carillon' })
  client.on('error', () => {})
  await client.connect()
  try {
    const pending = await pendingMigrations(client, await readMigrations())
    const { rowCount } = await client.query(`
      select from pg_class c
      where c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'p')
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      limit 1`)
    return { pending: pending.map(({ name }) => name), isEmpty: rowCount === 0 }
  } finally {
    await client.end()
  }
}

async function checkSchema(connection: pg.ClientConfig, clock: SystemClock, begins: boolean) {
  const { pending, isEmpty } = await lookAtSchema(connection)
  if (pending.length === 0) return
  if (isEmpty && begins) await migrate(connection, clock.now())
  else if (isEmpty) throw new Error('this database is still empty; start the server, or run "carillon org create"')
  else throw new Error(`the database is older than this version of Carillon; run "carillon migrate" first`)
}
