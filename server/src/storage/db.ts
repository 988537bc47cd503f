import { hash } from 'node:crypto'
import pg from 'pg'
import type { SystemClock } from '../lib/clock.ts'
import { TookTooLong, unavailable } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { isOnThisMachine, lowerPriority } from './priority.ts'
import { camelCase, type Sql } from './sql.ts'

export type QueryOptions = {
  /**
   * False for statements whose text is made at run time: a connection would keep each of them for ever. Planned anew each
   * time, they are also planned for their values, so that indexes on expressions with a value in them are found.
   */
  prepare?: boolean
  /** Instead of the pool's own limit. */
  timeoutMs?: number
}

export type Db = {
  /**
   * Run one statement, prepared under a name made from its text. Rows come with camelCase names. In a transaction, statements that
   * are asked for at once (`Promise.all`) travel together and run in that order.
   */
  query<Row>(statement: Sql, options?: QueryOptions): Promise<Row[]>
  /** The handle given to `run` is the transaction's; shadow the outer name so that it cannot be used by mistake. */
  transaction<Result>(run: (db: Db) => Promise<Result>): Promise<Result>
}

export type Pool = Db & {
  /** All that `run` reads is as it was at one moment, and it can write nothing: PostgreSQL refuses it. */
  snapshot<Result>(run: (db: Db) => Promise<Result>): Promise<Result>
  /**
   * The same connections, for somebody who may stop waiting: when the signal is aborted, PostgreSQL is told to end the statement that
   * runs, no further one is begun, and the promise is rejected with the signal's reason.
   */
  until(signal: AbortSignal): Db
  /** Connections in use or free, for the metrics page. */
  stats(): { total: number; idle: number; waiting: number }
  close(): Promise<void>
}

export type PoolOptions = {
  connection: pg.ClientConfig
  size?: number
  /** API callers get their 503 within 5 s; workers may wait longer for a large statement. */
  statementTimeoutMs?: number
  connectTimeoutMs?: number
  /** From 1 to 19, where PostgreSQL runs on this machine: how far whoever else wants the processor goes first. */
  niceness?: number
  clock?: SystemClock
  log?: Log
  /** Tests watch every statement. */
  onStatement?: (text: string) => void
}

const [INT8, NUMERIC, TIMESTAMPTZ] = [20, 1700, 1184]

// int8 and numeric come as text by default. Our integers stay within 2^53-1 by constraint.
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8 || oid === NUMERIC) return Number
    return oid === TIMESTAMPTZ ? readTime : pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

const parseTime = pg.types.getTypeParser(TIMESTAMPTZ, 'text')
const knownTimes = new Map<string, number>()
const MOST_TIMES = 1_000

/** Rows that are read together share most of their times: each is read once. */
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

/** The driver takes a timeout with each statement, and sends statements without waiting for answers; its types do not say so. */
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
 * Most transactions begin by reading: that travels together with the begin. Were the begin to fail, what is sent with it would run
 * without a transaction, and only of a read that is no harm. Whoever comes when the transaction is over is refused for the same reason.
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

/** The five letters PostgreSQL gives an error, or undefined when the error is not PostgreSQL's. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && (error as pg.DatabaseError).severity
    ? code
    : undefined
}

/**
 * The server cannot answer now: connections (08), resources and disk (53), operator intervention (57), system (58),
 * read-only while failing over (25006), or no PostgreSQL at the other end of the wire at all.
 */
function isOutage(error: unknown): boolean {
  const state = sqlState(error)
  if (state === undefined) return isWireError(error)
  return /^(08|53|57|58)/.test(state) || state === '25006' || state === 'XX000'
}

/** The driver's own words for a connection that cannot be had, broke, or does not answer; it gives them no code. */
const WIRE_MESSAGE =
  /^(Connection terminated|Query read timeout|timeout e|Client (has encountered a connection error|was closed) and is not queryable)/

function isWireError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code = '', syscall } = error as NodeJS.ErrnoException
  if (syscall === 'connect' || /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(code)) return true
  return WIRE_MESSAGE.test(error.message)
}

/** Nothing more can be asked on this connection: the server said so, or nobody knows what is still on the wire. */
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

/** The driver knows which process of PostgreSQL serves a connection; its types do not say so. */
type Served = { processID: number }

/** What a frozen process had locked is free again when others take over its jobs, whose leases last as long. */
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
    // The server cancels at the first, the client gives the connection up at the second: a frozen server cancels nothing.
    statement_timeout: statementTimeoutMs,
    query_timeout: answerTimeoutMs,
    idle_in_transaction_session_timeout: MAX_IDLE_IN_TRANSACTION_MS,
    idleTimeoutMillis: 60_000,
    application_name: 'carillon',
  }
  const pool = new pg.Pool(settings)
  // An idle connection that breaks is dropped by the pool; without a listener the event would end the process.
  pool.on('error', (error) => log?.debug({ reason: error.message }, 'Idle database connection lost'))
  // The same for one that breaks in use: its statement fails, and that is how the caller learns of it.
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

  // All connections of the pool may be busy with what is to be ended, so this takes one of its own, opened when it is needed.
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
   * Ends the connection with what runs on it. To cancel the statement alone would miss one that was sent and has not begun yet, and
   * could hit the next one of somebody else.
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

  // A caller who had to wait for a connection has that much less time to wait for the answer.
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
        // A busy server may be late to cancel; the limit of the client is for one that does not answer at all.
        return await execute<Row>(client, statement, options.timeoutMs + 5_000, options)
      } finally {
        // Back to what the connection was opened with.
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
        // PostgreSQL answers the commit of a failed transaction with a rollback, and calls that a success.
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
