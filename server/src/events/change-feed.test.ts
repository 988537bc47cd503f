// What whoever watches users is told of custom events.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { history, record } from '../../test/events.ts'
import { aUser } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import { createMerger } from '../storage/merge.ts'
import { sql } from '../storage/sql.ts'
import {
  CHANGE_FEED_JOB,
  enqueueLostFeedJobs,
  feedJobInsert,
  setWatches,
  takeFeedEntries,
} from '../users/change-feed/change-feed.ts'
import type { FeedWatch } from '../users/change-feed/feed.ts'
import { createUsersContext } from '../users/context.ts'
import { userIdOfRow } from '../users/reference-store.ts'
import { createEventsContext } from './context.ts'
import { HAS_FEED_ENTRIES, insertEvents } from './store.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const RUNG: FeedWatch = { kind: 'event', name: 'bell rung' }
const CHANGE: FeedWatch = { kind: 'change', name: '' }
const watch = (...watches: FeedWatch[]) => setWatches(app.db, app.tenant.id, watches)
const take = () => takeFeedEntries(app.db, app.tenant.id, 1000)
const wakeUps = () => app.db.query(sql`select key, lane from jobs where name = ${CHANGE_FEED_JOB}`)
const forgetWakeUps = () => app.db.query(sql`delete from jobs where name = ${CHANGE_FEED_JOB}`)

beforeEach(async () => {
  await watch()
  await take()
  await forgetWakeUps()
})

test('an event that is watched by its name is told of, as it was stored', async () => {
  const user = await aUser(app)
  await watch(RUNG)
  const of = { external_id: user.externalId }
  await record(app, [
    { ...of, timestamp: '2030-03-14T09:00:00Z', payload: { bell: 'Big Ben' } },
    { ...of, name: 'Bell rung' },
    { ...of, name: 'candle lit' },
    { external_id: 'nobody' },
  ])
  const stored = (await history(app, user)).find(({ name }) => name === RUNG.name)
  const event = {
    id: stored?.id,
    name: RUNG.name,
    at: new Date('2030-03-14T09:00:00Z'),
    properties: { bell: 'Big Ben' },
  }
  expect(await take()).toEqual([
    { id: stored?.id, userId: user.id, kind: 'event', runId: null, event, at: clock.now() },
  ])
  expect(await wakeUps()).toEqual([{ key: CHANGE_FEED_JOB, lane: 'direct' }])
})

test('where nothing or another event is watched nothing is written, and nobody is woken', async () => {
  const user = await aUser(app)
  await record(app, [{ external_id: user.externalId }])
  await watch({ kind: 'event', name: 'candle lit' }, { kind: 'session', name: '' }, { kind: 'action', name: '' })
  await record(app, [{ external_id: user.externalId }])
  expect(await take()).toEqual([])
  expect(await wakeUps()).toEqual([])
})

test('an event is a change too, once for each user of what is stored together', async () => {
  const [user, other] = [await aUser(app), await aUser(app)]
  await watch(CHANGE, RUNG)
  const of = { external_id: user.externalId }
  await record(app, [of, of, { ...of, name: 'candle lit' }, { external_id: other.externalId, name: 'candle lit' }])
  const said = (await take()).map(({ userId, kind }) => [userId, kind].join(' ')).sort()
  expect(said).toEqual([`${user.id} change`, `${user.id} event`, `${user.id} event`, `${other.id} change`].sort())
})

test('each event is told of once, also when requests are merged on two servers and keys come again', async () => {
  const user = await aUser(app)
  await watch(RUNG)
  const beside = await testApp({ clock, beside: app })
  try {
    const of = { external_id: user.externalId }
    const keys = Array.from({ length: 5 }, () => newId())
    const keyed = keys.map((idempotency_key) => ({ ...of, idempotency_key }))
    const sends = Array.from({ length: 30 }, (_, n) => record(n % 2 === 0 ? app : beside, [of, ...keyed, ...keyed]))
    await Promise.all(sends)
    await record(app, keyed)
    const stored = await history(app, user)
    expect(stored).toHaveLength(35)
    const news = await take()
    expect(news.map(({ event }) => event?.id).sort()).toEqual(stored.map(({ id }) => id).sort())
  } finally {
    await beside.close()
  }
})

test('keys that come again change nobody', async () => {
  const user = await aUser(app)
  const event = { external_id: user.externalId, idempotency_key: newId() }
  await record(app, [event])
  await watch(CHANGE, RUNG)
  await record(app, [event])
  expect(await take()).toEqual([])
  expect(await wakeUps()).toEqual([])
})

const anEvent = (userId: string, name: string) => ({
  id: newId(),
  key: undefined,
  user: { id: userId },
  name,
  at: clock.now(),
  properties: {},
})

test('events that cannot be stored are not told of', async () => {
  const user = await aUser(app)
  await watch(CHANGE, RUNG)
  const events = [anEvent(user.id, RUNG.name), anEvent(user.id, 'x'.repeat(129))]
  const times = { now: clock.now(), keysFrom: new Date(0) }
  const job = feedJobInsert(createQueue({ clock, newId }), app.tenant.id, HAS_FEED_ENTRIES, clock.now())
  await expect(insertEvents(app.db, app.tenant.id, userIdOfRow(app.tenant.id), job, events, times)).rejects.toThrow()
  expect(await take()).toEqual([])
})

test('the job of who takes the news comes with the event, though nobody could be told of it', async () => {
  const user = await aUser(app)
  await watch(RUNG)
  const parts = { db: app.db, clock, newId, merger: createMerger({ slots: 1 }) }
  const { reader } = createUsersContext(parts)
  let hasFailed = false
  const failing: Db = {
    ...app.db,
    query(statement, options) {
      if (!statement.text.includes('pg_notify')) return app.db.query(statement, options)
      hasFailed = true
      return Promise.reject(new Error('no connection'))
    },
  }
  const { insert } = createEventsContext({ ...parts, db: failing, reader, retentionDays: 400 })
  await insert(app.tenant.id, [anEvent(user.id, RUNG.name)])
  expect(hasFailed).toBe(true)
  expect(await history(app, user)).toHaveLength(1)
  expect(await wakeUps()).toHaveLength(1)
  expect(await take()).toHaveLength(1)
})

test('who takes the news is told of them only where that does not run already, and then does it once more', async () => {
  const user = await aUser(app)
  await watch(RUNG)
  const told: string[] = []
  const parts = { clock, newId, merger: createMerger({ slots: 1 }) }
  const db: Db = {
    ...app.db,
    query(statement, options) {
      if (statement.text.includes('pg_notify')) told.push(statement.text)
      return app.db.query(statement, options)
    },
  }
  const { reader } = createUsersContext({ ...parts, db })
  const { insert } = createEventsContext({ ...parts, db, reader, retentionDays: 400 })
  const again = () =>
    app.db.query(sql`select again_at is not null as is_again from jobs where name = ${CHANGE_FEED_JOB}`)
  await insert(app.tenant.id, [anEvent(user.id, RUNG.name)])
  expect([told.length, await again()]).toEqual([1, [{ isAgain: false }]])
  // It may have been passed over while the statement held it.
  await insert(app.tenant.id, [anEvent(user.id, RUNG.name)])
  expect(told).toHaveLength(2)
  await app.db.query(sql`
    update jobs set state = 'running', lease_until = ${clock.now()} where app_id = ${app.tenant.id} and name = ${CHANGE_FEED_JOB}`)
  await insert(app.tenant.id, [anEvent(user.id, RUNG.name)])
  expect([told.length, await again()]).toEqual([2, [{ isAgain: true }]])
})

test('the schedule wakes who takes news without a job', async () => {
  const user = await aUser(app)
  await watch(RUNG)
  await record(app, [{ external_id: user.externalId }])
  await forgetWakeUps()
  await enqueueLostFeedJobs({ db: app.db, clock, newId })
  expect(await wakeUps()).toHaveLength(1)
})
