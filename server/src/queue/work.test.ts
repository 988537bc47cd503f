import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { testDatabase } from '../../test/database.ts'
import { virtualClock } from '../lib/clock.ts'
import { unavailable } from '../lib/errors.ts'
import { type AppId, newId, SYSTEM_APP_ID } from '../lib/ids.ts'
import { createLog, type Log } from '../lib/log.ts'
import { createPool, type Db } from '../storage/db.ts'
import { createListener } from '../storage/listen.ts'
import { type Sql, sql } from '../storage/sql.ts'
import { createQueue } from './enqueue.ts'
import type { JobHandlers, JobRun } from './job.ts'
import { countParked, deleteParked, listParked, releaseParked } from './parked.ts'
import type { Schedule } from './schedule.ts'
import { JOBS_CHANNEL, notifyApps, takeLead } from './store.ts'
import { createWorker, type Worker, type WorkerOptions } from './work.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let db: Db
let clock: ReturnType<typeof virtualClock>
let logged: { level: number; msg: string; alarm?: boolean }[]
let log: Log
const started: Worker[] = []
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  database = await testDatabase()
  db = database.db
})

afterAll(async () => {
  process.off('unhandledRejection', note)
  await database.close()
})

beforeEach(async () => {
  clock = virtualClock()
  logged = []
  log = createLog('debug', { write: (line: string) => void logged.push(JSON.parse(line)) })
  for (const table of [sql`jobs`, sql`schedule_slots`, sql`leaders`]) await db.query(sql`delete from ${table}`)
})

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.stop()))
  expect(unhandled).toEqual([])
})

const quick = { finishMs: 50, unwindMs: 10, sweepMs: 50, heartbeatMs: 50 }

let asked = 0
const watched: Db = {
  async query<Row>(statement: Sql) {
    asked++
    return await db.query<Row>(statement).finally(() => asked--)
  },
  async transaction(run) {
    asked++
    return await db.transaction(run).finally(() => asked--)
  },
}

/** No worker has anything to ask the database any more: one that hangs in a handler now is as good as dead. */
const quiet = () => until(() => asked === 0)

/** Real timers, short ones, and a virtual clock behind them. */
function aWorker(handlers: JobHandlers, options: Partial<WorkerOptions> = {}) {
  const worker = createWorker({ db: watched, clock, log, handlers, random: () => 1, timing: quick, ...options })
  started.push(worker)
  return worker
}

async function anApp(): Promise<AppId> {
  const [id, organization] = [newId(), newId()]
  const now = clock.now()
  await db.query(sql`insert into organizations (id, name, created_at) values (${organization}, 'o', ${now})`)
  await db.query(sql`insert into apps (id, organization_id, name, created_at, updated_at)
    values (${id}, ${organization}, 'a', ${now}, ${now})`)
  return id
}

const enqueue = (...jobs: Parameters<ReturnType<typeof createQueue>['enqueue']>[1]) =>
  createQueue({ clock, newId }).enqueue(db, jobs)

const jobs = () =>
  db.query<{ name: string; key: string; state: string; attempts: number; crashes: number; fence: number; runAt: Date }>(
    sql`select name, key, state, attempts, crashes, fence, run_at from jobs order by name, key`,
  )

async function until(isSo: () => boolean | Promise<boolean>) {
  const deadline = performance.now() + 60_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A handler whose runs end when the test says so. */
function gated() {
  const runs: { work: JobRun; end: () => void; fail: (error: Error) => void }[] = []
  const run = (work: JobRun) =>
    new Promise<void>((resolve, reject) => {
      runs.push({ work, end: resolve, fail: reject })
    })
  return { runs, run }
}

const at = (index: number, { runs }: ReturnType<typeof gated>) => runs[index] as (typeof runs)[number]
const never = () => new Promise<void>(() => {})

test('eight workers run each of many jobs exactly once', async () => {
  const apps = [await anApp(), await anApp(), SYSTEM_APP_ID]
  await enqueue(
    ...apps.flatMap((appId) => Array.from({ length: 300 }, (_, i) => ({ appId, name: 'count', key: `${appId} ${i}` }))),
  )
  const seen: string[] = []
  const run = async ({ job }: JobRun) => void seen.push(job.key)
  const workers = Array.from({ length: 8 }, () => aWorker({ count: { run } }))
  await Promise.all(workers.map((worker) => worker.runDue()))
  expect(seen).toHaveLength(900)
  expect(new Set(seen).size).toBe(900)
  expect(await jobs()).toEqual([])
})

test('the handler gets the job as it was enqueued', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'greet', key: 'k', payload: { to: ['Zoë', 1] } })
  const works: JobRun[] = []
  await aWorker({ greet: { run: async (work) => void works.push(work) } }).runDue()
  expect(works[0]?.job).toMatchObject({ appId, name: 'greet', key: 'k', payload: { to: ['Zoë', 1] }, attempts: 0 })
  expect(works[0]?.fence).toBe(1)
})

test('the same work enqueued twice is one job, due at the earlier time, with the newer payload', async () => {
  const appId = await anApp()
  const other = await anApp()
  const later = new Date(clock.now().getTime() + 60_000)
  await enqueue({ appId, name: 'x', key: 'k', payload: 1, runAt: later })
  await enqueue({ appId, name: 'x', key: 'k', payload: 2 }, { appId, name: 'x', key: 'k', payload: 3, runAt: later })
  await enqueue({ appId: other, name: 'x', key: 'k', payload: 4 }, { appId, name: 'y', key: 'k', payload: 5 })
  const payloads: unknown[] = []
  const run = async ({ job }: JobRun) => void payloads.push(job.payload)
  await aWorker({ x: { run }, y: { run } }).runDue()
  expect(payloads.sort()).toEqual([3, 4, 5])
})

test('work enqueued while it runs is done once more', async () => {
  const appId = await anApp()
  let runs = 0
  const run = async () => {
    if (++runs === 1) await enqueue({ appId, name: 'x', key: 'k' }, { appId, name: 'x', key: 'k' })
  }
  await enqueue({ appId, name: 'x', key: 'k' })
  await aWorker({ x: { run } }).runDue()
  expect(runs).toBe(2)
  expect(await jobs()).toEqual([])
})

test('the second run needs neither a sweep nor a notification', async () => {
  const appId = await anApp()
  let runs = 0
  const run = async () => {
    if (++runs === 1) await enqueue({ appId, name: 'x', key: 'k' })
  }
  await enqueue({ appId, name: 'x', key: 'k' })
  aWorker({ x: { run } }, { timing: { ...quick, sweepMs: 600_000 } }).start()
  await until(() => runs === 2)
})

test('a job can put itself off to a later time', async () => {
  const appId = await anApp()
  const next = new Date(clock.now().getTime() + 3_600_000)
  let runs = 0
  const run = async () => {
    runs++
    await enqueue({ appId, name: 'x', key: 'k', runAt: next })
  }
  await enqueue({ appId, name: 'x', key: 'k' })
  const worker = aWorker({ x: { run } })
  await worker.runDue()
  expect(runs).toBe(1)
  expect(await jobs()).toMatchObject([{ state: 'ready', runAt: next, attempts: 0 }])
})

test('a job is enqueued with its transaction or not at all', async () => {
  const appId = await anApp()
  const queue = createQueue({ clock, newId })
  const failing = db.transaction(async (db) => {
    await queue.enqueue(db, [{ appId, name: 'x', key: 'k' }])
    throw new Error('changed my mind')
  })
  await expect(failing).rejects.toThrow('changed my mind')
  expect(await jobs()).toEqual([])
})

test('jobs of several apps are enqueued together, also without a transaction around them', async () => {
  const apps = [await anApp(), await anApp()].sort()
  const keys = ['fine', 'far too long '.repeat(50)]
  await expect(enqueue(...apps.map((appId, i) => ({ appId, name: 'x', key: keys[i] ?? '' })))).rejects.toThrow()
  expect(await jobs()).toEqual([])
})

test('an app that does not exist gets no jobs', async () => {
  await enqueue({ appId: newId(), name: 'x', key: 'k' })
  expect(await jobs()).toEqual([])
})

test('a job runs when it is due and not before', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k', runAt: new Date(clock.now().getTime() + 1_000) })
  const worker = aWorker({ x: { run: async () => {} } })
  clock.advance({ ms: 999 })
  expect(await worker.runDue()).toBe(0)
  clock.advance({ ms: 1 })
  expect(await worker.runDue()).toBe(1)
})

test('a claim does not wait for a job that somebody has locked', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: '1' }, { appId, name: 'x', key: '2' })
  const worker = aWorker({ x: { run: async () => {} } })
  await db.transaction(async (db) => {
    await db.query(sql`select 1 from jobs where key = '1' for update`)
    expect(await worker.runDue()).toBe(1)
  })
  expect(await worker.runDue()).toBe(1)
})

test('a job whose lease ran out is taken over, and the first worker changes nothing any more', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  const [first, second] = [gated(), gated()]
  const one = aWorker({ x: first })
  const two = aWorker({ x: second })
  const oneDone = one.runDue()
  await until(() => first.runs.length === 1)
  expect(await at(0, first).work.isStillHeld(db)).toBe(true)

  await quiet()
  clock.advanceLease({ ms: 9_999 })
  expect(await two.runDue()).toBe(0)
  clock.advanceLease({ ms: 1 })
  const twoDone = two.runDue()
  await until(() => second.runs.length === 1)
  expect(at(0, second).work.fence).toBe(2)
  expect(await at(0, first).work.isStillHeld(db)).toBe(false)
  expect(await at(0, second).work.isStillHeld(db)).toBe(true)

  at(0, first).end()
  await oneDone
  expect(await jobs()).toMatchObject([{ state: 'running', fence: 2, crashes: 1 }])
  at(0, second).end()
  await twoDone
  expect(await jobs()).toEqual([])
})

test('the failure of a worker that lost its lease is refused too', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  const [first, second] = [gated(), gated()]
  const oneDone = aWorker({ x: first }).runDue()
  await until(() => first.runs.length === 1)
  await quiet()
  clock.advanceLease({ seconds: 30 })
  const twoDone = aWorker({ x: second }).runDue()
  await until(() => second.runs.length === 1)
  at(0, first).fail(new Error('too late'))
  await oneDone
  expect(await jobs()).toMatchObject([{ state: 'running', attempts: 0 }])
  at(0, second).end()
  await twoDone
})

test('a job cannot be taken over inside a transaction that asked whether it is still ours', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  const first = gated()
  const done = aWorker({ x: first }).runDue()
  await until(() => first.runs.length === 1)
  await quiet()
  clock.advanceLease({ seconds: 31 })
  const two = aWorker({ x: { run: async () => {} } })
  await db.transaction(async (db) => {
    expect(await at(0, first).work.isStillHeld(db)).toBe(true)
    expect(await two.runDue()).toBe(0)
  })
  expect(await two.runDue()).toBe(1)
  at(0, first).end()
  await done
})

test('others carry on with the jobs of a frozen worker after 10 seconds', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  void aWorker({ x: { run: never } }).runDue()
  await until(async () => (await jobs())[0]?.state === 'running')
  await quiet()
  let ran = 0
  aWorker({ x: { run: async () => void ran++ } }).start()
  for (let second = 0; second < 10; second++) {
    expect(ran).toBe(0)
    clock.advanceLease({ seconds: 1 })
  }
  await until(() => ran === 1)
})

test('after an outage of the database workers have time to renew their leases', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  void aWorker({ x: { run: never } }).runDue()
  await until(async () => (await jobs())[0]?.state === 'running')
  await quiet()
  let isAway = false
  let rounds = 0
  const mayBeAway: Db = {
    async query<Row>(statement: Sql) {
      if (statement.text.includes('into leaders')) rounds++
      if (isAway) throw unavailable()
      return watched.query<Row>(statement)
    },
    transaction: (run) => watched.transaction(run),
  }
  const anotherRound = async () => {
    const before = rounds
    await until(() => rounds > before + 1)
    await quiet()
  }
  let ran = 0
  aWorker({ x: { run: async () => void ran++ } }, { db: mayBeAway, timing: { ...quick, leaseMs: 300 } }).start()
  await anotherRound()
  isAway = true
  clock.advanceLease({ seconds: 20 })
  await anotherRound()
  isAway = false
  for (const ms of [0, 100, 100, 99]) {
    clock.advanceLease({ ms })
    await anotherRound()
    expect(ran).toBe(0)
  }
  clock.advanceLease({ ms: 1 })
  await until(() => ran === 1)
})

test('a job whose first two workers died is done by the third', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  for (const fence of [1, 2]) {
    void aWorker({ x: { run: never } }).runDue()
    await until(async () => (await jobs())[0]?.fence === fence)
    expect(await jobs()).toMatchObject([{ state: 'running', crashes: fence - 1 }])
    await quiet()
    clock.advanceLease({ seconds: 30 })
  }
  expect(await aWorker({ x: { run: async () => {} } }).runDue()).toBe(1)
  expect(await jobs()).toEqual([])
})

test('a job that ends its worker five times is parked with an alarm; the others go on, also those that died with it', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'poison', key: 'p' })
  await enqueue(...['a', 'b', 'c'].map((key) => ({ appId, name: 'good', key })))
  const seen: string[] = []
  const run = async ({ job }: JobRun) => void seen.push(job.key)
  // A process that dies takes what runs beside the culprit with it, until suspects are kept apart.
  for (let death = 0; death < 5; death++) {
    const poisoned = gated()
    const isDead = () => poisoned.runs.length > 0
    const good = (work: JobRun) => (isDead() || work.job.crashes < 2 ? never() : run(work))
    void aWorker({ poison: poisoned, good: { run: good } }).runDue()
    await until(
      async () => isDead() && (await jobs()).filter(({ state }) => state === 'running').length === (death < 2 ? 4 : 1),
    )
    await quiet()
    clock.advanceLease({ seconds: 30 })
  }
  await aWorker({ poison: { run }, good: { run } }).runDue()
  expect(seen.sort()).toEqual(['a', 'b', 'c'])
  expect(await jobs()).toMatchObject([{ name: 'poison', state: 'parked', crashes: 5 }])
  expect(logged.filter(({ alarm }) => alarm)).toHaveLength(1)
})

test('a job that gets something done before its worker dies is never parked for that', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'long', key: 'k' })
  for (let death = 0; death < 5; death++) {
    let hasMoved = false
    const run = async ({ recordProgress }: JobRun) => {
      await recordProgress(db)
      hasMoved = true
      return never()
    }
    void aWorker({ long: { run } }).runDue()
    await until(() => hasMoved)
    clock.advanceLease({ seconds: 30 })
  }
  expect(await aWorker({ long: { run: async () => {} } }).runDue()).toBe(1)
  expect(await jobs()).toEqual([])
})

test('a failing job is tried again after 1, 2, 4 … seconds and then parked with its error', async () => {
  const appId = await anApp()
  const tries: number[] = []
  const begin = clock.now().getTime()
  const run = async () => {
    tries.push((clock.now().getTime() - begin) / 1000)
    throw new Error(`no luck \0 with ${tries.length}`)
  }
  await enqueue({ appId, name: 'x', key: 'k' }, { appId, name: 'y', key: 'k', runAt: new Date(begin + 30_000) })
  const worker = aWorker({ x: { run, maxAttempts: 5 }, y: { run: async () => {} } })
  for (let second = 0; second <= 60; second++) {
    await worker.runDue()
    clock.advance({ seconds: 1 })
  }
  expect(tries).toEqual([0, 1, 3, 7, 15])
  expect(await listParked(db, appId)).toMatchObject([{ name: 'x', attempts: 5, lastError: 'Error: no luck  with 5' }])
  expect(await jobs()).toHaveLength(1)
})

test('half of the delay is random', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  const run = async () => {
    throw new Error('no')
  }
  await aWorker({ x: { run } }, { random: () => 0 }).runDue()
  expect(await jobs()).toMatchObject([{ runAt: new Date(clock.now().getTime() + 500) }])
})

test('parked jobs are listed, released and deleted', async () => {
  const appId = await anApp()
  const failing = async () => {
    throw new Error('no')
  }
  await enqueue({ appId, name: 'x', key: '1' }, { appId, name: 'x', key: '2' })
  const worker = aWorker({ x: { run: failing, maxAttempts: 1 } })
  await worker.runDue()
  // Asking for parked work again does not bring it back.
  await enqueue({ appId, name: 'x', key: '1' })
  expect(await worker.runDue()).toBe(0)
  expect(await countParked(db)).toEqual([{ appId, count: 2 }])
  const [one, two] = (await listParked(db, appId)).sort((a, b) => (a.key < b.key ? -1 : 1))
  expect(await releaseParked(db, await anApp(), [one?.id as string], clock.now())).toBe(0)
  expect(await releaseParked(db, appId, [one?.id as string], clock.now())).toBe(1)
  expect(await jobs()).toMatchObject([
    { key: '1', state: 'ready', attempts: 0 },
    { key: '2', state: 'parked' },
  ])
  expect(await deleteParked(db, appId, [one?.id as string, two?.id as string])).toBe(1)
  expect(await aWorker({ x: { run: async () => {} } }).runDue()).toBe(1)
  expect(await jobs()).toEqual([])
})

test('a job that nobody knows is tried for a while and parked; its neighbours run', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'toString', key: 'k', payload: { odd: true } }, { appId, name: 'x', key: 'k' })
  const worker = aWorker({ x: { run: async () => {} } })
  expect(await worker.runDue()).toBe(2)
  for (let tries = 1; tries < 12; tries++) {
    expect(await jobs()).toMatchObject([{ state: 'ready', attempts: tries }])
    clock.advance({ hours: 1 })
    await worker.runDue()
  }
  expect(await listParked(db, appId)).toMatchObject([{ lastError: 'Error: no handler for toString' }])
})

test('a handler that throws at once and one that throws no error are failures like others', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'sync', key: 'k' }, { appId, name: 'text', key: 'k' })
  const sync = () => {
    throw new Error('at once')
  }
  const text = () => Promise.reject('just text')
  await aWorker({ sync: { run: sync, maxAttempts: 1 }, text: { run: text, maxAttempts: 1 } }).runDue()
  expect((await listParked(db, appId)).map(({ lastError }) => lastError).sort()).toEqual([
    'Error: at once',
    'Error: just text',
  ])
})

test('a handler that never ends is aborted at its time limit and counted', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'stuck', key: 'k' }, { appId, name: 'x', key: 'k' })
  const signals: AbortSignal[] = []
  const run = ({ signal }: JobRun) => {
    signals.push(signal)
    return never()
  }
  const worker = aWorker({ stuck: { run, timeLimitMs: 20 }, x: { run: async () => {} } })
  expect(await worker.runDue()).toBe(2)
  expect(signals[0]?.aborted).toBe(true)
  expect(await jobs()).toMatchObject([{ name: 'stuck', state: 'ready', attempts: 1, crashes: 0 }])
})

test('the heartbeat keeps a long job, and tells a handler that lost it', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'k' })
  const long = gated()
  aWorker({ x: long }).start()
  await until(() => long.runs.length === 1)
  const leases = async () => (await db.query<{ until: Date }>(sql`select lease_until as until from jobs`))[0]?.until
  for (let step = 0; step < 4; step++) {
    clock.advanceLease({ seconds: 5 })
    await until(async () => Number(await leases()) === clock.leaseMs() + 10_000)
  }
  expect(await jobs()).toMatchObject([{ state: 'running', fence: 1, crashes: 0 }])
  expect(at(0, long).work.signal.aborted).toBe(false)
  await db.query(sql`update jobs set fence = fence + 1`)
  await until(() => at(0, long).work.signal.aborted)
  expect(await jobs()).toMatchObject([{ state: 'running', fence: 2 }])
})

test('a notification wakes a worker between two sweeps', async () => {
  const appId = await anApp()
  const listener = createListener(database.connection, log)
  const seen: string[] = []
  try {
    const slow = { ...quick, sweepMs: 600_000 }
    aWorker({ x: { run: async ({ job }) => void seen.push(job.key) } }, { listener, timing: slow }).start()
    await until(() => logged.some(({ msg }) => msg.startsWith('Listening for jobs')))
    await until(async () => (await db.query(sql`select 1 from leaders`)).length === 1)
    for (const key of ['1', '2', '3']) {
      await enqueue({ appId, name: 'x', key })
      await until(() => seen.includes(key))
    }
  } finally {
    await listener.close()
  }
})

test('who is asked for what runs already tells nobody else', async () => {
  const appId = await anApp()
  const listener = createListener(database.connection, log)
  const long = gated()
  const heard: string[] = []
  let isListening = false
  listener.on(
    JOBS_CHANNEL,
    (payload) => void heard.push(payload),
    () => {
      isListening = true
    },
  )
  const said = async (...names: string[]) => {
    heard.length = 0
    await enqueue(...names.map((name) => ({ appId, name, key: 'k' })))
    await notifyApps(db, [{ appId: SYSTEM_APP_ID }])
    await until(() => heard.includes(SYSTEM_APP_ID))
    return heard.filter((it) => it === appId).length
  }
  try {
    await until(() => isListening)
    expect(await said('long')).toBe(1)
    // Nothing about it changes, but whoever looked just now may have passed it over, because it was locked.
    expect(await said('long')).toBe(1)
    aWorker({ long, other: { run: never } }, { timing: { ...quick, sweepMs: 600_000 } }).start()
    await until(() => long.runs.length === 1)
    // The sweep that found it says so too.
    await quiet()
    await said()
    expect(await said('long')).toBe(0)
    expect(await said('long', 'other')).toBe(1)
    at(0, long).end()
    await until(() => long.runs.length === 2)
  } finally {
    await listener.close()
  }
})

test('the sweep finds timers and lost notifications without being told', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'x', key: 'timer', runAt: new Date(clock.now().getTime() + 60_000) })
  const seen: string[] = []
  aWorker({ x: { run: async ({ job }) => void seen.push(job.key) } }).start()
  await enqueue({ appId, name: 'x', key: 'untold' })
  await until(() => seen.includes('untold'))
  clock.advance({ minutes: 1 })
  await until(() => seen.includes('timer'))
  await until(async () => (await jobs()).length === 0)
})

test('one of several workers leads, and another follows when it is gone', async () => {
  const leader = async () => (await db.query<{ holder: string }>(sql`select holder from leaders`))[0]?.holder
  const one = aWorker({})
  one.start()
  await until(async () => (await leader()) !== undefined)
  const first = await leader()
  const two = aWorker({})
  two.start()
  await one.stop()
  await until(async () => ![undefined, first].includes(await leader()))
})

test('the lead of a worker that died falls free with its lease, and not before', async () => {
  const [dead, heir] = [newId(), newId()]
  const lead = (holder: string) => {
    const now = clock.leaseMs()
    return takeLead(db, 'sweep', holder, new Date(now), new Date(now + 6_000))
  }
  expect(await lead(dead)).toBe(true)
  clock.advanceLease({ ms: 5_999 })
  expect(await lead(heir)).toBe(false)
  clock.advanceLease({ ms: 1 })
  expect(await lead(heir)).toBe(true)
  expect(await lead(dead)).toBe(false)
})

test('a schedule runs once per slot on two workers, and once for all the slots missed', async () => {
  const slots: unknown[] = []
  const schedule: Schedule = { name: 'tidy', everyMs: 60_000, run: async ({ job }) => void slots.push(job.payload) }
  const workers = [aWorker({}, { schedules: [schedule] }), aWorker({}, { schedules: [schedule] })]
  const turn = () => Promise.all(workers.map((worker) => worker.runDue()))
  await turn()
  await turn()
  expect(slots).toEqual([{ slot: '2030-01-01T09:00:00.000Z' }])
  clock.advance({ seconds: 61 })
  await turn()
  clock.advance({ hours: 5 })
  await turn()
  await turn()
  // A node that starts later learns from the database what was handed out.
  await aWorker({}, { schedules: [schedule] }).runDue()
  expect(slots).toEqual([
    { slot: '2030-01-01T09:00:00.000Z' },
    { slot: '2030-01-01T09:01:00.000Z' },
    { slot: '2030-01-01T14:01:00.000Z' },
  ])
})

test('a daily schedule runs at its time, and a run that failed for good does not stop the next day', async () => {
  const days: string[] = []
  const run = async () => {
    days.push(clock.now().toISOString())
    throw new Error('no')
  }
  const worker = aWorker({}, { schedules: [{ name: 'nightly', dailyAt: '03:30', run }] })
  for (let minutes = 0; minutes < 48 * 60; minutes += 30) {
    await worker.runDue()
    clock.advance({ minutes: 30 })
  }
  expect(days.filter((_, i) => i % 5 === 0)).toEqual([
    '2030-01-01T09:00:00.000Z',
    '2030-01-02T03:30:00.000Z',
    '2030-01-03T03:30:00.000Z',
  ])
  expect(await listParked(db, SYSTEM_APP_ID)).toEqual([])
})

test('apps take turns: a large backlog does not hold up another app', async () => {
  const [large, small] = [await anApp(), await anApp()]
  await enqueue(...Array.from({ length: 500 }, (_, i) => ({ appId: large, name: 'x', key: `${i}` })))
  await enqueue(...Array.from({ length: 5 }, (_, i) => ({ appId: small, name: 'x', key: `${i}` })))
  const order: AppId[] = []
  await aWorker({ x: { run: async ({ job }) => void order.push(job.appId) } }, { concurrency: 4 }).runDue()
  expect(order).toHaveLength(505)
  expect(order.lastIndexOf(small)).toBeLessThan(30)
})

test('as many apps as slots get one slot each', async () => {
  const apps = [await anApp(), await anApp(), await anApp(), await anApp()]
  await enqueue(...apps.flatMap((appId) => ['1', '2', '3'].map((key) => ({ appId, name: 'slow', key }))))
  const long = gated()
  aWorker({ slow: long }, { concurrency: 4 }).start()
  await until(() => long.runs.length === 4)
  expect(new Set(long.runs.map(({ work }) => work.job.appId)).size).toBe(4)
})

test('an app whose jobs are slow leaves slots for the others', async () => {
  const [slow, other] = [await anApp(), await anApp()]
  await enqueue(...Array.from({ length: 50 }, (_, i) => ({ appId: slow, name: 'slow', key: `${i}` })))
  const long = gated()
  let isDone = false
  const run = async () => {
    isDone = true
  }
  aWorker({ slow: long, x: { run } }, { concurrency: 4 }).start()
  await until(() => long.runs.length === 3)
  await enqueue({ appId: other, name: 'x', key: 'k' })
  await until(() => isDone)
  expect(long.runs).toHaveLength(3)
})

/** Whom jobs of this name wait for stands before the last slash of their key. */
const beforeSlash = (key: string) => key.slice(0, key.lastIndexOf('/') + 1)

async function manyWaiting(whom: string, apps: number) {
  const ids = await Promise.all(Array.from({ length: apps }, anApp))
  await enqueue(
    ...ids.flatMap((appId) => [0, 1, 2, 3].map((part) => ({ appId, name: 'send', key: `${whom}/${part}` }))),
  )
  return ids
}

test('whoever waits for somebody slow holds up nobody who waits for another, or for nobody', async () => {
  await manyWaiting('slow', 10)
  const long = gated()
  const done: string[] = []
  const send = {
    waitsFor: beforeSlash,
    run: async (work: JobRun) => {
      if (work.job.key.startsWith('slow')) return long.run(work)
      done.push(work.job.key)
    },
  }
  aWorker({ send, x: { run: async ({ job }) => void done.push(job.name) } }, { concurrency: 4 }).start()
  await until(() => long.runs.length >= 12)
  await enqueue(
    ...(await Promise.all([anApp(), anApp()])).flatMap((appId) => [
      { appId, name: 'x', key: 'k' },
      { appId, name: 'send', key: 'fast/0' },
    ]),
  )
  await until(() => done.length === 4)
  expect(done.toSorted()).toEqual(['fast/0', 'fast/0', 'x', 'x'])
  expect(long.runs.length).toBeLessThanOrEqual(16)
})

test('apps whose jobs do not end leave room for the next app that waits for the same', async () => {
  const long = gated()
  aWorker({ send: { ...long, waitsFor: beforeSlash } }, { concurrency: 20 }).start()
  const appsThatRun = () => new Set(long.runs.map(({ work }) => work.job.appId))
  for (let apps = 1; apps <= 6; apps++) {
    await manyWaiting('slow', 1)
    await until(() => appsThatRun().size === apps)
    await quiet()
  }
  expect(long.runs).toHaveLength(16)
})

test('of jobs that all wait for the same, whatever their key, an app leaves room for others', async () => {
  const long = gated()
  aWorker({ send: { ...long, waitsFor: () => '', maxWaiting: () => 6 } }, { concurrency: 4 }).start()
  const appsThatRun = () => new Set(long.runs.map(({ work }) => work.job.appId))
  for (const [n, whom] of ['a', 'b', 'c'].entries()) {
    await manyWaiting(whom, 1)
    await until(() => appsThatRun().size === n + 1)
    await quiet()
  }
  expect(long.runs.length).toBeLessThanOrEqual(6)
})

test('more jobs wait for the same where their handler says so', async () => {
  await manyWaiting('slow', 10)
  const long = gated()
  aWorker({ send: { ...long, waitsFor: beforeSlash, maxWaiting: () => 80 } }, { concurrency: 4 }).start()
  await until(() => long.runs.length === 40)
})

test('who found that enough others wait has a turn when one of them is done, without a sweep', async () => {
  const apps = await manyWaiting('slow', 6)
  const long = gated()
  const timing = { ...quick, sweepMs: 3_600_000 }
  aWorker({ send: { ...long, waitsFor: beforeSlash } }, { concurrency: 4, timing }).start()
  await until(() => long.runs.length >= 12)
  await quiet()
  expect(long.runs.length).toBeLessThanOrEqual(16)
  for (let ended = 0; ended < 24; ended++) {
    await until(() => long.runs.length > ended)
    at(ended, long).end()
  }
  expect(new Set(long.runs.map(({ work }) => work.job.appId))).toEqual(new Set(apps))
})

test('a quarter of the slots is kept for direct jobs, which may use all of them', async () => {
  const [busy, other] = [await anApp(), await anApp()]
  const many = (appId: AppId, lane: 'direct' | 'bulk') =>
    Array.from({ length: 20 }, (_, i) => ({ appId, name: lane, key: `${i}`, lane }))
  const [direct, bulk] = [gated(), gated()]
  await enqueue(...many(busy, 'bulk'), ...many(other, 'bulk'))
  const worker = aWorker({ direct, bulk }, { concurrency: 6 })
  worker.start()
  await until(() => bulk.runs.length === 6)
  await enqueue(...many(busy, 'direct'))
  await until(() => direct.runs.length === 2)
  await quiet()
  expect(worker.running()).toBe(8)
  for (let i = 0; i < 6; i++) at(i, bulk).end()
  // An app has at most three quarters of all slots; the bulk jobs get what is left.
  await until(() => direct.runs.length === 6 && worker.running() === 8)
  expect(bulk.runs).toHaveLength(8)
})

test('a job starts when it is due, not at the next sweep', async () => {
  const appId = await anApp()
  // The alarm is a real one: on a busy machine it must not ring before the clock has been advanced.
  const ms = 500
  const soon = () => new Date(clock.now().getTime() + ms)
  const done: string[] = []
  const run = async ({ job }: JobRun) => void done.push(job.key)
  const listener = createListener(database.connection, log)
  try {
    await enqueue({ appId, name: 'x', key: 'found ahead by the sweep', runAt: soon() })
    aWorker({ x: { run } }, { listener, timing: { ...quick, sweepMs: 600_000 } }).start()
    await until(() => logged.some(({ msg }) => msg.startsWith('Listening for jobs')))
    await quiet()
    expect(done).toEqual([])
    clock.advance({ ms })
    await until(() => done.length === 1)
    await enqueue({ appId, name: 'x', key: 'announced', runAt: soon() })
    clock.advance({ ms })
    await until(() => done.length === 2)
  } finally {
    await listener.close()
  }
})

test('stop() lets jobs finish, hands back those that do not, and counts nothing', async () => {
  const appId = await anApp()
  await enqueue({ appId, name: 'ends', key: 'k' }, { appId, name: 'stays', key: 'k' })
  const [ends, stays] = [gated(), gated()]
  // Long enough for the job that ends to be written down on a busy machine, too.
  const worker = aWorker({ ends, stays }, { timing: { ...quick, finishMs: 3_000 } })
  worker.start()
  await until(() => ends.runs.length + stays.runs.length === 2)
  await quiet()
  const stopped = worker.stop()
  expect(at(0, stays).work.isStopping()).toBe(true)
  await enqueue({ appId, name: 'late', key: 'k' })
  at(0, ends).end()
  await stopped
  expect(worker.running()).toBe(0)
  expect(at(0, stays).work.signal.aborted).toBe(true)
  expect(await jobs()).toMatchObject([
    { name: 'late', state: 'ready', fence: 0 },
    { name: 'stays', state: 'ready', attempts: 0, crashes: 0 },
  ])
})

test('stop() in the middle of claiming leaves nothing claimed', async () => {
  const appId = await anApp()
  await enqueue(...Array.from({ length: 100 }, (_, i) => ({ appId, name: 'x', key: `${i}` })))
  const worker = aWorker({ x: { run: async () => {} } })
  const slowed: Db = {
    ...db,
    async query<Row>(statement: Sql) {
      const rows = await db.query<Row>(statement)
      if (/set\s+state = 'running'/.test(statement.text)) stopped ??= claiming.stop()
      return rows
    },
  }
  let stopped: Promise<void> | undefined
  const claiming = aWorker({ x: { run: async () => {} } }, { db: slowed })
  await claiming.runDue()
  await stopped
  const left = await jobs()
  expect(left).toHaveLength(100)
  expect(left.every(({ state, attempts }) => state === 'ready' && attempts === 0)).toBe(true)
  expect(await worker.runDue()).toBe(100)
})

/** A wire to the database that can be cut: everything on it breaks, and nothing new gets through. */
async function aWire() {
  const { host = '', port = 0 } = database.connection
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    const far = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => other.destroy())
      socket.pipe(other)
    }
    if (isCut) near.destroy()
  })
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const near = { ...database.connection, host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  return {
    connection: near,
    cut,
    mend: () => {
      isCut = false
    },
    close: () => {
      cut()
      server.close()
    },
  }
}

test('a worker survives the database going away, keeps what it did, and goes on', async () => {
  const appId = await anApp()
  const wire = await aWire()
  const pool = createPool({ connection: wire.connection })
  const [before, after] = [gated(), gated()]
  try {
    await enqueue({ appId, name: 'before', key: 'k' })
    const worker = aWorker({ before, after }, { db: pool })
    worker.start()
    await until(() => before.runs.length === 1)
    wire.cut()
    await until(() => logged.some(({ msg }) => msg.startsWith('Queue maintenance failed')))
    await until(() => logged.some(({ msg }) => msg.startsWith('Could not renew job leases')))
    expect(at(0, before).work.signal.aborted).toBe(false)
    at(0, before).end()
    await enqueue({ appId, name: 'after', key: 'k' })
    const failures = () => logged.filter(({ msg }) => msg.startsWith('Could not renew job leases')).length
    const sofar = failures()
    await until(() => failures() > sofar + 1)
    expect(await jobs()).toMatchObject([
      { name: 'after', state: 'ready' },
      { name: 'before', state: 'running' },
    ])
    wire.mend()
    await until(() => after.runs.length === 1)
    at(0, after).end()
    await until(async () => (await jobs()).length === 0)
    expect(before.runs).toHaveLength(1)
    await worker.stop()
  } finally {
    await pool.close()
    wire.close()
  }
})

test('a worker cut off from the database for longer than its lease lets go of its jobs', async () => {
  const appId = await anApp()
  const wire = await aWire()
  const pool = createPool({ connection: wire.connection })
  const long = gated()
  try {
    await enqueue({ appId, name: 'x', key: 'k' })
    aWorker({ x: long }, { db: pool }).start()
    await until(() => long.runs.length === 1)
    wire.cut()
    clock.advanceLease({ seconds: 30 })
    await until(() => at(0, long).work.signal.aborted)
    await Promise.all(started.splice(0).map((worker) => worker.stop()))
  } finally {
    await pool.close()
    wire.close()
  }
})

test('a burst refreshes the statistics that claims are planned with', async () => {
  const appId = await anApp()
  const later = new Date(clock.now().getTime() + 1_000)
  await enqueue(...Array.from({ length: 10_001 }, (_, i) => ({ appId, name: 'x', key: `${i}`, runAt: later })))
  const count = () => db.query<{ n: number }>(sql`select reltuples as n from pg_class where relname = 'jobs'`)
  const worker = aWorker({ x: { run: never } }, { concurrency: 1 })
  clock.advance({ seconds: 1 })
  void worker.runDue()
  await until(async () => ((await count())[0]?.n ?? 0) > 10_000)
})
