import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { systemClock } from '../lib/clock.ts'
import { AppError, invalid, TookTooLong } from '../lib/errors.ts'
import { createLog } from '../lib/log.ts'
import { createPool, type Db, type Pool, sqlState } from './db.ts'
import { type EmbeddedPostgres, startEmbedded } from './embedded.ts'
import { createListener } from './listen.ts'
import { createMerger } from './merge.ts'
import { joined, rows, sql } from './sql.ts'

let database: TestDatabase
let db: Pool

beforeAll(async () => {
  database = await testDatabase()
  db = database.db
  await db.query(sql`create table notes (id int primary key, note_text text)`)
})
afterAll(() => database.close())

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )
const kindOf = async (promise: Promise<unknown>) => {
  const error = await failure(promise)
  return error instanceof AppError ? error.kind : error
}
const backendPid = async (on: Db) => (await on.query<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid
const noteIds = async () => (await db.query<{ id: number }>(sql`select id from notes order by id`)).map(({ id }) => id)

describe('a statement', () => {
  test('is bound, never spliced, and its rows have camelCase names and plain numbers', async () => {
    const condition = sql`n > ${1} and t = ${"'; drop table notes; --"}`
    const found = await db.query(sql`
      select n as some_number, count(*) as how_many, 2.5::numeric as half_way
      from (values (${2}::int, ${"'; drop table notes; --"}::text)) v (n, t) where ${condition} group by n`)
    expect(found).toEqual([{ someNumber: 2, howMany: 1, halfWay: 2.5 }])
  })

  test('takes any number of rows as one parameter', async () => {
    const list = Array.from({ length: 1_000 }, (_, id) => ({ id, text: `n${id}` }))
    const [sum] = await db.query(sql`
      select count(*) as n, max(r.text) as last from jsonb_to_recordset(${rows(list)}) r (id int, text text)`)
    expect(sum).toEqual({ n: 1_000, last: 'n999' })
  })

  test('that is wrong gives its own error, and the connection stays in use', async () => {
    const one = createPool({ connection: database.connection, size: 1 })
    const pid = await backendPid(one)
    expect(sqlState(await failure(one.query(sql`select 1 / ${0}::int`)))).toBe('22012')
    expect(await backendPid(one)).toBe(pid)
    await one.close()
  })

  test('that takes too long is unavailable', async () => {
    const hasty = createPool({ connection: database.connection, size: 1, statementTimeoutMs: 100 })
    expect(await kindOf(hasty.query(sql`select pg_sleep(30)`))).toBe('unavailable')
    expect(await hasty.query(sql`select 1 as n`)).toEqual([{ n: 1 }])
    await hasty.close()
  })

  test('can have a time limit of its own, which the next one on the connection has not', async () => {
    const pool = createPool({ connection: database.connection, size: 1, statementTimeoutMs: 100 })
    await pool.query(sql`select pg_sleep(0.3)`, { timeoutMs: 5_000 })
    expect(await failure(pool.query(sql`select pg_sleep(30)`))).toBeInstanceOf(TookTooLong)
    expect(await failure(pool.query(sql`select pg_sleep(30)`, { timeoutMs: 50 }))).toBeInstanceOf(TookTooLong)
    expect(await pool.query(sql`show statement_timeout`)).toEqual([{ statementTimeout: '100ms' }])
    await pool.close()
  })

  test('that is not to be prepared leaves nothing in the connection', async () => {
    const pool = createPool({ connection: database.connection, size: 1 })
    const prepared = () => pool.query(sql`select count(*) as n from pg_prepared_statements`, { prepare: false })
    for (let n = 0; n < 3; n++)
      await pool.query(joined([sql`select 1 as n`, sql`select ${n}::int`], ' union '), { prepare: false })
    expect(await prepared()).toEqual([{ n: 0 }])
    await pool.query(sql`select 1`)
    expect(await prepared()).toEqual([{ n: 1 }])
    await pool.close()
  })

  test('is put together from fragments in a row, their values in order', () => {
    const { text, values } = joined([sql`a = ${1}`, sql`b`, sql`c in (${2}, ${3})`], ' and ')
    expect({ text, values }).toEqual({ text: 'a = $1 and b and c in ($2, $3)', values: [1, 2, 3] })
  })

  test('that waited for a connection has that much less time for its answer', async () => {
    const pool = createPool({ connection: database.connection, size: 1, statementTimeoutMs: 1_000 })
    const both = [1, 2].map(() => kindOf(pool.query(sql`select pg_sleep(0.9)`)))
    expect(await Promise.all(both)).toEqual([undefined, 'unavailable'])
    await pool.close()
  })

  test('brings the clock to the time of the database', async () => {
    const clock = systemClock()
    clock.anchor(0, performance.now(), performance.now())
    const clocked = createPool({ connection: database.connection, size: 1, clock })
    const [row] = await clocked.query<{ ms: number }>(sql`select extract(epoch from clock_timestamp()) * 1000 as ms`)
    expect(Math.abs(clock.leaseMs() - (row?.ms ?? 0))).toBeLessThan(1_000)
    await clocked.close()
  })
})

describe('a transaction', () => {
  test('is kept as a whole', async () => {
    await db.transaction(async (db) => {
      await db.query(sql`insert into notes values (1)`)
      await db.query(sql`insert into notes values (2)`)
    })
    expect(await noteIds()).toEqual([1, 2])
  })

  test('is rolled back as a whole when its rule or a statement fails, also inside another', async () => {
    const fault = invalid('Connection timeout: these words are the rule’s own')
    const failing = db.transaction(async (db) => {
      await db.query(sql`insert into notes values (3)`)
      await db.transaction((db) => db.query(sql`insert into notes values (4)`))
      throw fault
    })
    expect(await failure(failing)).toBe(fault)
    const twice = db.transaction(async (db) => {
      await db.query(sql`insert into notes values (5)`)
      await db.query(sql`insert into notes values (1)`)
    })
    expect(sqlState(await failure(twice))).toBe('23505')
    expect(await noteIds()).toEqual([1, 2])
  })

  test('does not claim success when a failed statement was overlooked', async () => {
    const overlooked = db.transaction(async (db) => {
      await db.query(sql`insert into notes values (6)`)
      await db.query(sql`insert into notes values (1)`).catch(() => {})
    })
    expect(await failure(overlooked)).toBeInstanceOf(Error)
    expect(await noteIds()).toEqual([1, 2])
  })

  test('runs statements that are asked for at once in their order', async () => {
    const [, before, , after] = await db.transaction((db) =>
      Promise.all([
        db.query(sql`insert into notes values (50)`),
        db.query(sql`select id from notes where id >= 50`),
        db.query(sql`insert into notes values (51)`),
        db.query(sql`select id from notes where id >= 50`),
      ]),
    )
    expect([before, after]).toEqual([[{ id: 50 }], [{ id: 50 }, { id: 51 }]])
    await db.query(sql`delete from notes where id >= 50`)
  })

  test('of which one of several statements at once fails tells that error, and keeps none of them', async () => {
    const failing = db.transaction((db) =>
      Promise.all([
        db.query(sql`insert into notes values (50)`),
        db.query(sql`select 1 / 0`),
        db.query(sql`insert into notes values (51)`),
      ]),
    )
    expect(sqlState(await failure(failing))).toBe('22012')
    expect(await noteIds()).not.toContain(50)
    expect(await noteIds()).not.toContain(51)
  })

  test('refuses a statement that comes when it is over', async () => {
    let late: Promise<unknown> | undefined
    const failing = db.transaction(async (db) => {
      const straggler = async () => {
        await db.query(sql`select pg_sleep(0.05)`)
        await db.query(sql`insert into notes values (60)`)
      }
      late = failure(straggler())
      throw invalid('no')
    })
    expect(await kindOf(failing)).toBe('invalid')
    expect(String(await late)).toContain('after the end of its transaction')
    expect(await noteIds()).not.toContain(60)
  })

  test('whose connection is killed between two statements is unavailable, and the process lives', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.query(sql`insert into notes values (7)`)
      await db.query(sql`select pg_terminate_backend(${await backendPid(tx)}::int, 5000)`)
      await tx.query(sql`insert into notes values (8)`)
    })
    expect(await kindOf(failing)).toBe('unavailable')
    expect(await noteIds()).toEqual([1, 2])
  })
})

describe('a snapshot', () => {
  test('sees one moment, whatever is written meanwhile', async () => {
    await db.query(sql`delete from notes`)
    const seen = await db.snapshot(async (still) => {
      const count = async () => (await still.query(sql`select id from notes`)).length
      const before = await count()
      await db.query(sql`insert into notes (id) values (1)`)
      return [before, await count()]
    })
    expect(seen).toEqual([0, 0])
    expect(await noteIds()).toEqual([1])
    await db.query(sql`delete from notes`)
  })

  test('can write nothing', async () => {
    const write = db.snapshot((still) => still.query(sql`insert into notes (id) values (2)`))
    expect(await kindOf(write)).toBe('unavailable')
    expect(await noteIds()).toEqual([])
  })
})

describe('when the database is in trouble', () => {
  test('killed backends cost the statements they ran, and the next ones work', async () => {
    const pool = createPool({ connection: database.connection, size: 3 })
    const running = Promise.all([1, 2, 3].map(() => kindOf(pool.query(sql`select pg_sleep(30)`))))
    const sleepers = sql`
      from pg_stat_activity
      where datname = current_database() and query like 'select pg_sleep%' and state = 'active'`
    await vi.waitFor(async () => expect(await db.query(sql`select pid ${sleepers}`)).toHaveLength(3), {
      timeout: 3_000,
    })
    await db.query(sql`select pg_terminate_backend(pid) ${sleepers}`)
    expect(await running).toEqual(['unavailable', 'unavailable', 'unavailable'])
    const again = await Promise.all([1, 2, 3].map((n) => pool.query(sql`select ${n}::int as n`)))
    expect(again).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
    await pool.close()
  })

  test('idle connections that were killed are not handed out', async () => {
    const pool = createPool({ connection: database.connection, size: 1 })
    const pid = await backendPid(pool)
    await db.query(sql`select pg_terminate_backend(${pid}::int, 5000)`)
    await vi.waitFor(() => expect(pool.stats().total).toBe(0))
    expect(await backendPid(pool)).not.toBe(pid)
    await pool.close()
  })

  test('PostgreSQL ends the transaction of a process that stopped talking after 10 s', async () => {
    const pool = createPool({ connection: database.connection, size: 1 })
    const [row] = await pool.query<{ ms: number }>(sql`
      select setting::integer as ms from pg_settings where name = 'idle_in_transaction_session_timeout'`)
    expect(row?.ms).toBe(10_000)
    await pool.close()
  })

  test('a frozen backend is unavailable within 5 s, also for those who wait behind it', async ({ skip }) => {
    const pool = createPool({ connection: database.connection, size: 1 })
    const pid = (await backendPid(pool)) as number
    if (!isLocalBackend(pid)) skip('PostgreSQL runs on another machine')
    const echo = createMerger({ slots: 1 }).merged({
      name: 'echo',
      run: async (_, inputs: number[]) =>
        (await pool.query<{ n: number }>(sql`select unnest(${inputs}::int[]) as n`)).map(({ n }) => ({ value: n })),
    })
    process.kill(pid, 'SIGSTOP')
    try {
      const limit = fiveSeconds()
      const inFlight = echo('a', 1)
      await new Promise((resolve) => setImmediate(resolve))
      const kinds = Promise.all([inFlight, echo('a', 2), echo('b', 3), pool.query(sql`select 1`)].map(kindOf))
      expect(await Promise.race([kinds, limit])).toEqual(['unavailable', 'unavailable', 'unavailable', 'unavailable'])
      // The frozen connection was given up, so the next caller gets another.
      expect(await echo('a', 4)).toBe(4)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await pool.close()
  })
})

/** A timer of this process, so that a machine which is too busy for the one timer delays the other too. */
const fiveSeconds = () => new Promise<string>((resolve) => setTimeout(resolve, 5_000, 'more than 5 s').unref())

/** A number alone could be any process here; a backend shows the name of its database. */
function isLocalBackend(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(String(database.connection.database))
  } catch {
    return false
  }
}

describe('when the whole server goes', () => {
  let folder: string
  let server: EmbeddedPostgres
  let pool: Pool

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'carillon-db-'))
    server = await startEmbedded({ dataDir: folder, log: createLog('silent'), settings: { fsync: 'off' } })
    pool = createPool({ connection: server.connection, size: 4 })
  })
  afterAll(async () => {
    await pool.close()
    await server.stop()
    await rm(folder, { recursive: true })
  })

  test('a frozen server is unavailable within 5 s', async () => {
    const pid = server.pid() as number
    process.kill(pid, 'SIGSTOP')
    try {
      const limit = fiveSeconds()
      expect(await Promise.race([kindOf(pool.query(sql`select 1`)), limit])).toBe('unavailable')
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    expect(await pool.query(sql`select 1 as n`)).toEqual([{ n: 1 }])
  })

  test('callers get unavailable while it is away, and answers and notifications when it is back', async () => {
    const heard: string[] = []
    let gaps = 0
    const listener = createListener(server.connection, createLog('silent'))
    const onGap = () => {
      gaps++
    }
    listener.on('news', (payload) => heard.push(payload), onGap)
    await vi.waitFor(() => expect(gaps).toBe(1), { timeout: 5_000 })
    const sleeping = kindOf(pool.query(sql`select pg_sleep(30)`))
    await pool.query(sql`select 1`)
    process.kill(server.pid() as number, 'SIGKILL')
    expect(await sleeping).toBe('unavailable')
    await vi.waitFor(async () => expect(await pool.query(sql`select 1 as n`)).toEqual([{ n: 1 }]), { timeout: 15_000 })
    await vi.waitFor(() => expect(gaps).toBe(2), { timeout: 15_000 })
    await pool.query(sql`select pg_notify('news', 'one')`)
    await vi.waitFor(() => expect(heard).toEqual(['one']), { timeout: 5_000 })
    await listener.close()
  })

  test('a server that is not there at all is unavailable', async () => {
    const nowhere = createPool({ connection: { ...server.connection, host: join(folder, 'nowhere') } })
    expect(await kindOf(nowhere.query(sql`select 1`))).toBe('unavailable')
    expect(await kindOf(nowhere.transaction(async () => 1))).toBe('unavailable')
    await nowhere.close()
  })
})

describe('a caller who stops waiting', () => {
  /** That sleep, in any database of the server; the names of others are random. */
  const sleepers = async () => {
    const [row] = await db.query<{ count: number }>(sql`
      select count(*) as count from pg_stat_activity
      where datname = current_database() and state = 'active' and query like '%pg_sleep(3600)%' and pid <> pg_backend_pid()`)
    return row?.count
  }
  const untilSleeping = (count: number) =>
    vi.waitFor(async () => expect(await sleepers()).toBe(count), { timeout: 30_000 })

  test('has the statement ended, and the connection is replaced', async () => {
    const one = createPool({ connection: database.connection, size: 1, statementTimeoutMs: 600_000 })
    const leaving = new AbortController()
    const waiting = failure(one.until(leaving.signal).query(sql`select pg_sleep(3600)`))
    await untilSleeping(1)
    leaving.abort(new Error('left'))
    expect(await waiting).toEqual(new Error('left'))
    await untilSleeping(0)
    expect(await one.query(sql`select 1 as n`)).toEqual([{ n: 1 }])
    await one.close()
  })

  test('has the transaction rolled back, and no further statement is begun', async () => {
    const one = createPool({ connection: database.connection, size: 1, statementTimeoutMs: 600_000 })
    const leaving = new AbortController()
    const handle = one.until(leaving.signal)
    const waiting = failure(
      handle.transaction(async (db) => {
        await db.query(sql`insert into notes (id, note_text) values (${9_001}, 'left behind')`)
        await db.query(sql`select pg_sleep(3600)`)
      }),
    )
    await untilSleeping(1)
    leaving.abort(new Error('left'))
    expect(await waiting).toEqual(new Error('left'))
    expect(await noteIds()).not.toContain(9_001)
    expect(await failure(handle.query(sql`select 1`))).toEqual(new Error('left'))
    await one.close()
  })

  test('keeps the connection where nobody left', async () => {
    const one = createPool({ connection: database.connection, size: 1 })
    const pid = await backendPid(one)
    expect(await backendPid(one.until(new AbortController().signal))).toBe(pid)
    expect(await backendPid(one)).toBe(pid)
    await one.close()
  })
})

test('a pool that is nice leaves the processor to others, where PostgreSQL is on this machine', async () => {
  const [low, usual] = [{ niceness: 10 }, {}].map((more) =>
    createPool({ connection: database.connection, size: 1, ...more }),
  ) as [Pool, Pool]
  try {
    const priorityOf = async (pool: Pool) => {
      const [{ pid = 0 } = {}] = await pool.query<{ pid: number }>(sql`select pg_backend_pid() as pid`)
      // Also in the weight of its session, where Linux has such.
      const session = existsSync(`/proc/${pid}/autogroup`) ? readFileSync(`/proc/${pid}/autogroup`, 'utf8') : undefined
      return { own: getPriority(pid), session: session && Number(/nice (-?\d+)/.exec(session)?.[1]) }
    }
    const isLocal = database.connection.host?.startsWith('/')
    const found = await priorityOf(usual)
    expect(found.own).toBe(0)
    const lowered = { own: 10, session: found.session === undefined ? undefined : 10 }
    expect(await priorityOf(low)).toEqual(isLocal ? lowered : found)
  } finally {
    await Promise.all([low.close(), usual.close()])
  }
})
