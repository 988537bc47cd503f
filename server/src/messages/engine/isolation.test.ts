// One app's audiences take for ever: a lock on the events that they look at sees to that. Nobody else notices.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngine,
  anEngineWorker,
  closeRenderer,
  type FakeSender,
  fakeSender,
  messageRow,
  only,
  recipients,
  runEngine,
  tally,
  unshared,
} from '../../../test/engine.ts'
import { holdTable } from '../../../test/hold-table.ts'
import { openPools, type Pools } from '../../composition/pools.ts'
import { virtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import type { Worker } from '../../queue/work.ts'
import { createScanAudience } from '../../segments/scan.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from './types.ts'

const clock = virtualClock()
/** As many as one app may have under way of all jobs of the bulk lane. */
const HOSTILE_MESSAGES = 14

let app: TestApp
let pools: Pools
let sender: FakeSender
let engine: Engine
let worker: Worker
let hostile: AppId
let other: AppId
let held: { release(): Promise<void> }
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})
beforeEach(async () => {
  const shares = { requests: 10, limits: 2, counting: 3, jobs: 10, direct: 6, audiences: 3 }
  pools = openPools({ connection: app.connection, shares, log: createLog('error') })
  sender = fakeSender()
  engine = {
    ...anEngine({ db: pools.workerDb, clock, sender, scanAudience: createScanAudience(pools.audiences) }),
    directDb: pools.directDb,
  }
  worker = anEngineWorker(engine, { db: pools.directDb, timing: { sweepMs: 50 } })
  hostile = (await app.anotherTenant()).id
  other = (await app.anotherTenant()).id
  held = await holdTable(app.connection, 'events')
})
afterEach(async () => {
  await held.release()
  await worker.stop()
  await pools.close()
})

const filtersOf = (...filters: object[]) => ({ kind: 'filters' as const, filters: filters as never, excluded: [] })
const didNothing = { field: 'event', name: 'bought', relation: '=', count: 0 }
const isGold = { field: 'tag', key: 'level', relation: '=', value: 'gold' }

const untilDone = (appId: AppId, id: string) =>
  vi.waitFor(async () => expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done' }), {
    timeout: 60_000,
    interval: 50,
  })

const countBlocked = async () => {
  const [row] = await app.db.query<{ count: number }>(sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%events%'`)
  return row?.count
}

test('direct and bulk messages of another app go out while the audiences of one app do not end', async () => {
  await recipients(engine, hostile, 20)
  const crowd = await recipients(engine, hostile, 4, { tags: { level: 'gold' } })
  const ids: string[] = []
  for (let n = 0; n < HOSTILE_MESSAGES; n++)
    ids.push(await aMessage(engine, hostile, { audience: filtersOf(isGold, didNothing) }))
  worker.start()
  await vi.waitFor(async () => expect(await countBlocked()).toBe(2), { timeout: 60_000 })

  const [person] = await recipients(engine, other, 3, { tags: { level: 'gold' } })
  const direct = await aMessage(engine, other, { lane: 'direct', audience: only(person?.id as string) })
  await untilDone(other, direct)
  const bulk = await aMessage(engine, other, { audience: filtersOf(isGold) })
  await untilDone(other, bulk)
  expect(await tally(app.db, other, bulk)).toEqual({ sent: 3 })

  // The app's own direct messages go out, too.
  const own = await aMessage(engine, hostile, { lane: 'direct', audience: only(crowd[0]?.id as string) })
  await untilDone(hostile, own)

  // Nothing of what is looked for is locked meanwhile, and no more than the app's share is under way.
  expect(
    await app.db.query(sql`select m.id from messages m where m.app_id = ${hostile} for update nowait`),
  ).toHaveLength(HOSTILE_MESSAGES + 1)
  expect(await countBlocked()).toBe(2)

  await held.release()
  for (const id of ids) {
    await untilDone(hostile, id)
    expect(await tally(app.db, hostile, id)).toEqual({ sent: crowd.length })
  }
})

test('an expansion that is limited in time goes on by smaller ranges, and everybody gets the message once', async () => {
  await held.release()
  let slow = 3
  const slowDb: Db = {
    ...app.db,
    query: (statement, options = {}) => {
      if (options.timeoutMs === undefined) return app.db.query(statement, options)
      if (slow === 0) return app.db.query(statement, { ...options, timeoutMs: 600_000 })
      slow--
      return app.db.query(sql`select pg_sleep(3600)`, { ...options, timeoutMs: 10 })
    },
  }
  const limited = { ...engine, scanAudience: createScanAudience(unshared(slowDb)) }
  const ranges: number[] = []
  const counted: Engine = {
    ...limited,
    growth: { ...limited.growth, record: (_id, count) => void ranges.push(count) },
  }
  await recipients(engine, other, 6_000)
  const id = await aMessage(engine, other, {})
  await runEngine(counted)
  expect(slow).toBe(0)
  expect(ranges[0]).toBe(1_250)
  expect(ranges.reduce((sum, count) => sum + count, 0)).toBe(6_000)
  expect(await tally(app.db, other, id)).toEqual({ sent: 6_000 })
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token)).size).toBe(6_000)
  expect(sender.calls).toHaveLength(6_000)
})
