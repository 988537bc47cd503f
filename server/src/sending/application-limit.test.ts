import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { aCountedApp } from '../../test/sending.ts'
import { anEmail } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { type AppId, newId } from '../lib/ids.ts'
import { createPool, type Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { insertAdministrator } from './notice-store.ts'
import { readSending } from './read.ts'
import { releaseMessages, reserveMessages } from './reserve.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())

const WINDOW = { minutes: 15 }

const anApp = (subscribed: number) => aCountedApp(server, clock, subscribed)
const giveBack = (appId: AppId, second: Date, count: number) =>
  server.db.transaction((db) => releaseMessages(db, appId, [{ second, count }], clock.now()))
const holdOf = async (appId: AppId) => (await readSending(server.db, appId, clock.now())).hold

const noticesOf = (appId: AppId) =>
  server.db.query<{ administratorId: string | null; detail: unknown }>(
    sql`select administrator_id, detail from notices where app_id = ${appId} order by administrator_id nulls first`,
  )

/** A full hour that no test has seen. */
beforeEach(() => clock.advance({ ms: 3_600_000 - (clock.now().getTime() % 3_600_000) }))

describe('within any 15 minutes', () => {
  test('an app may send 10 messages for each subscribed subscription, and is disabled by the next', async () => {
    const app = await anApp(2)
    expect(await app.take(20)).toMatchObject({ granted: 20 })
    expect(await holdOf(app.id)).toBeUndefined()
    const since = clock.now()
    const until = new Date(since.getTime() + 901_000)
    expect(await app.take(1)).toEqual({ granted: 0, second: since, hold: { reason: 'disabled', since, until } })
    expect(await holdOf(app.id)).toEqual({ reason: 'disabled', since, until })
  })

  test('the slice that would cross the limit gets what is left', async () => {
    const app = await anApp(1)
    expect(await app.take(7)).not.toHaveProperty('hold')
    expect(await app.take(7)).toMatchObject({ granted: 3, hold: { reason: 'disabled' } })
    expect(await app.take(1)).toMatchObject({ granted: 0, hold: { reason: 'disabled' } })
  })

  test('only subscriptions that are subscribed count, as they are at that moment', async () => {
    const app = await anApp(1)
    await app.ask('/users', { body: { subscriptions: [{ type: 'Email', token: anEmail(), enabled: false }] } })
    expect(await app.take(11)).toMatchObject({ granted: 10 })
    await app.subscribe(1)
    // 10 of 20 are used: half is not less than half.
    expect(await holdOf(app.id)).toMatchObject({ reason: 'disabled' })
    await app.subscribe(1)
    expect(await holdOf(app.id)).toBeUndefined()
    expect(await app.take(20)).not.toHaveProperty('hold')
  })

  test('an app without subscriptions may send nothing', async () => {
    const app = await anApp(1)
    await server.db.query(sql`update player_counts set subscribed = 0, players = 0 where app_id = ${app.id}`)
    const { hold } = await app.take(1)
    expect(hold).toEqual({ reason: 'disabled', since: clock.now() })
    clock.advance({ days: 1 })
    expect(await holdOf(app.id)).toEqual(hold)
    await app.subscribe(1)
    expect(await holdOf(app.id)).toBeUndefined()
  })

  test('an app in which all have unsubscribed goes by how many they are: mail may be for them all the same', async () => {
    const app = await anApp(2)
    await server.db.query(sql`update player_counts set subscribed = 0 where app_id = ${app.id}`)
    expect(await app.take(21)).toMatchObject({ granted: 20, hold: { reason: 'disabled' } })
  })

  test('apps do not use up each other’s', async () => {
    const [one, another] = [await anApp(1), await anApp(1)]
    await one.take(11)
    expect(await another.take(10)).not.toHaveProperty('hold')
  })
})

describe('messages count for 15 minutes after sending', () => {
  test.each([0, 1, 499, 999])(
    'up to and including the last millisecond: sent %i ms after a full second',
    async (ms) => {
      const app = await anApp(1)
      clock.advance({ ms })
      await app.take(10)
      clock.advance(WINDOW)
      expect(await app.take(1)).toMatchObject({ granted: 0 })
    },
  )

  test.each([0, 1, 999])('and no longer than a second more: sent %i ms after a full second', async (ms) => {
    const app = await anApp(1)
    clock.advance({ ms })
    await app.take(10)
    clock.advance({ ...WINDOW, seconds: 1 })
    expect(await app.take(10)).not.toHaveProperty('hold')
    expect(await app.take(1)).toMatchObject({ granted: 0 })
  })

  test('those of each second age on their own', async () => {
    const app = await anApp(1)
    await app.take(4)
    clock.advance({ seconds: 30 })
    await app.take(6)
    clock.advance({ minutes: 14, seconds: 31 })
    expect(await app.take(4)).not.toHaveProperty('hold')
    expect(await app.take(1)).toMatchObject({ granted: 0 })
  })

  test('a server whose clock is behind another’s does not see a window that is over', async () => {
    const app = await anApp(1)
    await app.take(10)
    const late = new Date(clock.now().getTime() + 901_000)
    await server.db.transaction((db) => reserveMessages(db, app.id, 6, late))
    const early = new Date(late.getTime() - 200)
    const second = late
    expect(await server.db.transaction((db) => reserveMessages(db, app.id, 6, early))).toMatchObject({
      granted: 4,
      second,
    })
  })
})

describe('an app that is disabled', () => {
  test('comes back by itself when less than half of the limit is used, and says when', async () => {
    const app = await anApp(1)
    for (const count of [3, 3, 4]) {
      await app.take(count)
      clock.advance({ seconds: 10 })
    }
    const { hold } = await app.take(1)
    expect(hold?.until).toEqual(new Date(clock.now().getTime() - 20_000 + 901_000))
    clock.advance({ ms: (hold?.until?.getTime() ?? 0) - clock.now().getTime() - 1 })
    expect(await holdOf(app.id)).toEqual(hold)
    expect(await app.take(1)).toMatchObject({ granted: 0, hold })
    clock.advance({ ms: 1 })
    expect(await holdOf(app.id)).toBeUndefined()
    expect(await app.take(6)).not.toHaveProperty('hold')
    expect(await noticesOf(app.id)).toHaveLength(1)
    expect(await app.take(1)).toMatchObject({ granted: 0, hold: { reason: 'disabled', since: clock.now() } })
    expect(await noticesOf(app.id)).toHaveLength(2)
  })

  test('is told of once to each administrator and once to the app, with what was used', async () => {
    const app = await anApp(1)
    const administrators = ['one@example.com', 'two@example.com'].map((email) => ({ id: newId(), email }))
    for (const it of administrators)
      await insertAdministrator(server.db, app.id, {
        ...it,
        webhookUrl: null,
        webhookSecret: null,
        createdAt: clock.now(),
      })
    await app.take(11)
    await app.take(11)
    const detail = { used: 10, limit: 10 }
    const ids = administrators.map((it) => it.id).sort()
    expect(await noticesOf(app.id)).toEqual([null, ...ids].map((administratorId) => ({ administratorId, detail })))
  })
})

describe('what a provider refused', () => {
  test('is given back', async () => {
    const app = await anApp(1)
    const { second } = await app.take(10)
    await giveBack(app.id, second, 4)
    expect(await app.take(4)).not.toHaveProperty('hold')
    expect(await app.take(1)).toMatchObject({ granted: 0 })
  })

  test('is given back no more than once, and not when it has aged', async () => {
    const app = await anApp(1)
    const { second } = await app.take(2)
    clock.advance({ seconds: 1 })
    await app.take(8)
    await giveBack(app.id, second, 5)
    expect(await app.take(3)).toMatchObject({ granted: 2 })
    clock.advance({ minutes: 16 })
    await app.take(10)
    await giveBack(app.id, second, 2)
    expect(await app.take(1)).toMatchObject({ granted: 0 })
  })

  test('can end the disabling', async () => {
    const app = await anApp(1)
    const { second } = await app.take(11)
    await giveBack(app.id, second, 5)
    expect(await holdOf(app.id)).toMatchObject({ reason: 'disabled' })
    await giveBack(app.id, second, 1)
    expect(await holdOf(app.id)).toBeUndefined()
  })
})

describe('many at once', () => {
  type Sent = { atMs: number; count: number }

  /** The largest number of messages in any 15 minutes, both edges included. */
  const mostInAWindow = (log: readonly Sent[]) =>
    Math.max(
      ...log.map(({ atMs: start }) =>
        log.filter(({ atMs }) => atMs >= start && atMs <= start + 900_000).reduce((sum, { count }) => sum + count, 0),
      ),
    )

  test('never send more than the limit in any window, disable the app once, and give one notice each', async () => {
    const app = await anApp(20)
    const administratorId = newId()
    const nobody = { webhookUrl: null, webhookSecret: null, createdAt: clock.now() }
    await insertAdministrator(server.db, app.id, { id: administratorId, email: 'one@example.com', ...nobody })
    const servers = Array.from({ length: 3 }, () => createPool({ connection: server.connection, size: 8 }))
    const log: Sent[] = []
    try {
      for (let round = 0; round < 40; round++) {
        const wanted = Array.from({ length: 24 }, (_, i) => 1 + ((i * 7 + round) % 5))
        const atMs = clock.now().getTime()
        const reservations = await Promise.all(
          wanted.map((count, i) => app.take(count, servers[i % servers.length] as Db)),
        )
        for (const { granted, second } of reservations) {
          log.push({ atMs, count: granted })
          if (granted > 2 && round % 3 === 0) {
            await giveBack(app.id, second, 1)
            log.push({ atMs, count: -1 })
          }
        }
        clock.advance({ seconds: 37, ms: 300 })
      }
    } finally {
      for (const db of servers) await db.close()
    }
    expect(mostInAWindow(log)).toBeLessThanOrEqual(200)
    // Forty rounds are less than two windows: it filled up, came back, and filled up again.
    const total = log.reduce((sum, { count }) => sum + count, 0)
    expect(total).toBeGreaterThan(300)
    const disabled = await noticesOf(app.id)
    expect(disabled.map((it) => it.administratorId).sort()).toEqual(
      [administratorId, administratorId, null, null].sort(),
    )
  })

  test('disable an app once that crosses its limit by many slices at the same moment', async () => {
    const app = await anApp(2)
    const db = createPool({ connection: server.connection, size: 20 })
    try {
      const taken = await Promise.all(Array.from({ length: 40 }, () => app.take(3, db)))
      expect(taken.reduce((sum, { granted }) => sum + granted, 0)).toBe(20)
      expect(taken.filter(({ granted }) => granted === 2)).toHaveLength(1)
      expect(await noticesOf(app.id)).toHaveLength(1)
    } finally {
      await db.close()
    }
  })
})
