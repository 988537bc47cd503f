import { hash } from 'node:crypto'
import pg from 'pg'
import type { SystemClock } from '../lib/clock.ts'
import { TookTooLong, unavailable } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { isOnThisMachine, lowerPriority } from './priority.ts'
import { camelCase, type Sql } from './sql.ts'

export type QueryOptions = {
  /**
   * False for statements whose text is built at run time: a connection would keep each of them prepared forever.
   * Planned each time, they are also planned for their values, so that indexes on expressions containing a value are
   * used.
   */
  prepare?: boolean
  /** Replaces the pool's own limit. */
  timeoutMs?: number
}

export type Db = {
  /**
   * Runs one statement, prepared under a name derived from its text. Column names become camelCase. In a transaction,
   * statements that are issued together (`Promise.all`) are pipelined and run in that order.
   */
  query<Row>(statement: Sql, options?: QueryOptions): Promise<Row[]>
  /** `run` receives the handle of the transaction; shadow the outer name so that it cannot be used by mistake. */
  transaction<Result>(run: (db: Db) => Promise<Result>): Promise<Result>
}

export type Pool = Db & {
  /** Everything that `run` reads is from the same point in time, and PostgreSQL refuses any write. */
  snapshot<Result>(run: (db: Db) => Promise<Result>): Promise<Result>
  /**
   * Uses the same connections for a caller that may stop waiting: when the signal is aborted, PostgreSQL ends the
   * running statement, no further one is started, and the promise rejects with the signal's reason.
   */
  until(signal: AbortSignal): Db
  /** Counts of connections, for the metrics page. */
  stats(): { total: number; idle: number; waiting: number }
  close(): Promise<void>
}

export type PoolOptions = {
  connection: pg.ClientConfig
  size?: number
  /** API callers get their 503 within 5 s; workers may wait longer for a large statement. */
  statementTimeoutMs?: number
  connectTimeoutMs?: number
  /**
   * From 1 to 19: the niceness of the connections' PostgreSQL processes, if PostgreSQL runs on this machine. The higher
   * it is, the more other processes take precedence.
   */
  niceness?: number
  clock?: SystemClock
  log?: Log
  /** Lets tests observe every statement. */
  onStatement?: (text: string) => void
}

const [INT8, NUMERIC, TIMESTAMPTZ] = [20, 1700, 1184]

// int8 and numeric arrive as text by default. Constraints keep our integers within 2^53-1.
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8 || oid === NUMERIC) return Number
    return oid === TIMESTAMPTZ ? readTime : pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

const parseTime = pg.types.getTypeParser(TIMESTAMPTZ, 'text')
const knownTimes = new Map<string, number>()
const MOST_TIMES = 1_000

/** Rows that are read together share most of their times, so each distinct time is parsed once. */
function readTime(text: string): Date {
  let ms = knownTimes.get(text)
  if (ms === undefined) {
    ms = (parseTime(text) as Date).getTime()
    if (knownTimes.size >= MOST_TIMES) knownTimes.clear()
    knownTimes.set(text, ms)
  }
  return new Date(ms)
}

const names = new Map<string, string>()

function statementName(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = hash('sha256', text, 'hex').slice(0, 32)
    names.set(text, name)
  }
  return name
}

/** The driver accepts a timeout with each statement and can pipeline statements, but its types omit both. */
type Timed<Query> = Query & { query_timeout: number }
type Pipelined = { pipeline: boolean }

function executePlain(client: pg.ClientBase, text: string, timeoutMs: number) {
  const query: Timed<pg.QueryConfig> = { text, query_timeout: timeoutMs }
  return client.query(query)
}

async function execute<Row>(
  client: pg.ClientBase,
  statement: Sql,
  timeoutMs: number,
  { prepare = true }: QueryOptions = {},
): Promise<Row[]> {
  const query: Timed<pg.QueryArrayConfig> = {
    ...(prepare && { name: statementName(statement.text) }),
    text: statement.text,
    values: statement.values as unknown[],
    rowMode: 'array',
    types,
    query_timeout: timeoutMs,
  }
  const result = await client.query(query)
  const columns = result.fields.map((field) => camelCase(field.name))
  return (result.rows as unknown[][]).map((values) => {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = values[i]
    return row as Row
  })
}

/**
 * Most transactions start with a read, which is pipelined with the begin. If the begin failed, what was sent with it
 * would run outside a transaction, and only for a read is that harmless. Statements after the end of the transaction
 * are refused for the same reason.
 */
function insideTransaction(begin: Promise<unknown>, query: Db['query']): Pick<Db, 'query'> & { close(): void } {
  let state: 'beginning' | 'begun' | 'over' = 'beginning'
  let hasWritten = false
  const begun = begin.then(() => {
    if (state === 'beginning') state = 'begun'
  })
  begun.catch(() => {})
  return {
    async query<Row>(statement: Sql, options?: QueryOptions) {
      hasWritten ||= !isRead(statement)
      if (state === 'beginning' && hasWritten) await begun
      if (state === 'over') throw new Error('a statement came after the end of its transaction')
      const rows = query<Row>(statement, options)
      if (state === 'begun') return rows
      await Promise.all([begun, rows])
      return rows
    },
    close() {
      state = 'over'
    },
  }
}

const isRead = ({ text }: Sql) => /^\s*select\b/.test(text)

/** Returns PostgreSQL's five-character error code, or undefined for errors that are not PostgreSQL's. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && (error as pg.DatabaseError).severity
    ? code
    : undefined
}

/**
 * The server cannot answer now: connections (08), resources and disk (53), operator intervention (57), system (58),
 * read-only while failing over (25006), or the other end of the connection is not PostgreSQL at all.
 */
function isOutage(error: unknown): boolean {
  const state = sqlState(error)
  if (state === undefined) return isWireError(error)
  return /^(08|53|57|58)/.test(state) || state === '25006' || state === 'XX000'
}

/**
 * The driver's messages for a connection that cannot be opened, broke, or does not answer; these errors have no code.
 */
const WIRE_MESSAGE =
  /^(Connection terminated|Query read timeout|timeout e|Client (has encountered a connection error|was closed) and is not queryable)/

function isWireError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code = '', syscall } = error as NodeJS.ErrnoException
  if (syscall === 'connect' || /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)) return true
  return WIRE_MESSAGE.test(error.message)
}

/** The connection cannot be used any more: the server said so, or it is unknown what is still in transit on it. */
function isConnectionLost(error: unknown): boolean {
  if (sqlState(error) === undefined) return isWireError(error)
  return /^(FATAL|PANIC)$/.test((error as pg.DatabaseError).severity ?? '')
}

const QUERY_CANCELED = '57014'

function translated(error: unknown, log?: Log): unknown {
  if (!isOutage(error)) return error
  const about = { reason: (error as Error).message, code: (error as { code?: string }).code }
  if (sqlState(error) === QUERY_CANCELED) {
    log?.info(about, 'Statement canceled at its time limit')
    return new TookTooLong()
  }
  log?.warn(about, 'Database unavailable')
  return unavailable()
}

/** The driver knows which PostgreSQL process serves a connection; its types omit that. */
type Served = { processID: number }

/** The locks of a frozen process are released by the time others take over its jobs, whose leases last as long. */
const MAX_IDLE_IN_TRANSACTION_MS = 10_000

export function createPool(options: PoolOptions): Pool {
  const { clock, log, onStatement, size = 10 } = options
  const statementTimeoutMs = options.statementTimeoutMs ?? 4_000
  const answerTimeoutMs = statementTimeoutMs + 500
  const settings: pg.PoolConfig & Pipelined = {
    ...options.connection,
    max: size,
    pipeline: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 3_000,
    // The server cancels the statement after the first timeout, the client drops the connection after the second: a
    // frozen server cancels nothing.
    statement_timeout: statementTimeoutMs,
    query_timeout: answerTimeoutMs,
    idle_in_transaction_session_timeout: MAX_IDLE_IN_TRANSACTION_MS,
    idleTimeoutMillis: 60_000,
    application_name: 'carillon',
  }
  const pool = new pg.Pool(settings)
  // The pool drops an idle connection that breaks; without a listener the event would end the process.
  pool.on('error', (error) => log?.debug({ reason: error.message }, 'Idle database connection lost'))
  // The same for a connection that breaks in use: the caller learns of it because its statement fails.
  pool.on('connect', (client) => client.on('error', () => {}))
  const { niceness } = options
  if (niceness !== undefined && isOnThisMachine(options.connection))
    pool.on('connect', (client) => lowerPriority((client as pg.PoolClient & Partial<Served>).processID, niceness))

  let anchoredMs = Number.NEGATIVE_INFINITY
  async function anchorClock(client: pg.ClientBase, timeoutMs: number) {
    const began = performance.now()
    if (!clock || began - anchoredMs < 10_000) return
    anchoredMs = began
    const text = 'select extract(epoch from clock_timestamp()) * 1000 as ms'
    const { rows } = await executePlain(client, text, timeoutMs)
    clock.anchor(Number(rows[0].ms), began, performance.now())
  }

  // All connections of the pool may be busy with the statements to be ended, so this uses a connection of its own,
  // opened on demand.
  let terminators: pg.Pool | undefined
  async function terminate(client: pg.PoolClient): Promise<void> {
    terminators ??= new pg.Pool({ ...settings, max: 1, connectionTimeoutMillis: 3_000, idleTimeoutMillis: 10_000 })
    const { processID } = client as pg.PoolClient & Partial<Served>
    try {
      await terminators.query('select pg_terminate_backend($1)', [processID])
    } catch (error) {
      log?.warn(
        { reason: (error as Error).message },
        'Could not end an abandoned statement; it runs until its time limit',
      )
    }
  }

  /**
   * Terminates the connection along with what runs on it. Canceling only the statement would miss one that was sent but
   * has not started, and could hit another caller's next statement.
   */
  function endOnAbort(client: pg.PoolClient, signal: AbortSignal | undefined): () => Promise<void> {
    let ending: Promise<void> | undefined
    const onAbort = () => {
      ending = terminate(client)
    }
    signal?.addEventListener('abort', onAbort)
    return async () => {
      signal?.removeEventListener('abort', onAbort)
      await ending
    }
  }

  // Time spent waiting for a connection is subtracted from the time allowed for the answer.
  async function withClient<Result>(
    run: (query: Db['query'], plain: (text: string) => Promise<pg.QueryResult>) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted()
    const began = performance.now()
    let client: pg.PoolClient
    try {
      client = await pool.connect()
    } catch (error) {
      throw translated(error, log)
    }
    const timeoutMs = Math.max(1, answerTimeoutMs - (performance.now() - began))
    const stopListening = endOnAbort(client, signal)
    const query = async <Row>(statement: Sql, options: QueryOptions = {}) => {
      signal?.throwIfAborted()
      onStatement?.(statement.text)
      if (options.timeoutMs === undefined) return execute<Row>(client, statement, timeoutMs, options)
      await executePlain(client, `set statement_timeout = ${Math.ceil(options.timeoutMs)}`, timeoutMs)
      try {
        // A busy server may cancel late; the client's limit is for a server that does not answer at all.
        return await execute<Row>(client, statement, options.timeoutMs + 5_000, options)
      } finally {
        // Restores the value that the connection was opened with.
        await executePlain(client, 'reset statement_timeout', timeoutMs).catch(() => {})
      }
    }
    try {
      await anchorClock(client, timeoutMs)
      const result = await run(query, (text) => executePlain(client, text, timeoutMs))
      await stopListening()
      client.release(signal?.aborted ?? false)
      return result
    } catch (error) {
      await stopListening()
      client.release((signal?.aborted ?? false) || isConnectionLost(error))
      throw signal?.aborted ? signal.reason : translated(error, log)
    }
  }

  const transaction = <Result>(
    begin: string,
    run: (db: Db) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> =>
    withClient(async (query, plain) => {
      const inside = insideTransaction(plain(begin), query)
      const db: Db = { query: inside.query, transaction: (nested) => nested(db) }
      try {
        const result = await run(db).finally(inside.close)
        const { command } = await plain('commit')
        // PostgreSQL answers the commit of a failed transaction with a rollback, and reports that as a success.
        if (command !== 'COMMIT') throw new Error('a statement failed unnoticed, so its transaction was rolled back')
        return result
      } catch (error) {
        if (!isConnectionLost(error)) await plain('rollback')
        throw error
      }
    }, signal)

  const dbUntil = (signal?: AbortSignal): Db => ({
    query: (statement, options) => withClient((query) => query(statement, options), signal),
    transaction: (run) => transaction('begin', run, signal),
  })

  return {
    ...dbUntil(),
    until: dbUntil,
    snapshot: (run) => transaction('begin isolation level repeatable read read only', run),
    stats: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async close() {
      await Promise.all([pool.end(), terminators?.end()])
    },
  }
}
