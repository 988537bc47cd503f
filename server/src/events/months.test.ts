import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { ACCEPTED, history, record, runJobs } from '../../test/events.ts'
import { aUser, type MadeUser, told } from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'
import { Sql, sql } from '../storage/sql.ts'
import { maintainEventMonths } from './months.ts'

let app: TestApp
let clock: VirtualClock
let user: MadeUser
beforeEach(async () => {
  clock = virtualClock('2030-03-15T09:00:00Z')
  app = await testApp({ clock, eventRetentionDays: 60 })
  user = await aUser(app)
})
afterEach(() => app.close())

const months = async () => {
  const found = await app.db.query<{ name: string }>(
    sql`select relname as name from pg_class where relispartition and relkind = 'r' and relname like 'events%' order by relname`,
  )
  return found.map(({ name }) => name)
}
const send = (timestamp?: string) => record(app, [{ external_id: user.externalId, timestamp }])
const days = async () => (await history(app, user)).map(({ timestamp }) => timestamp.slice(0, 10))

describe('months', () => {
  test('are made by the job: back to the retention, and two months ahead', async () => {
    expect(await months()).toEqual([])
    await runJobs(app, clock, 60)
    expect(await months()).toEqual([
      'events_2030_01',
      'events_2030_02',
      'events_2030_03',
      'events_2030_04',
      'events_2030_05',
    ])
  })

  test('are made by the first event when no job has made them, and when time has run past them', async () => {
    expect(told(await send('2030-01-14T09:00:00Z'))).toEqual(ACCEPTED)
    expect(await months()).toHaveLength(5)
    clock.advance({ days: 365 })
    expect(told(await send())).toEqual(ACCEPTED)
    expect(await days()).toEqual(['2031-03-15', '2030-01-14'])
  })

  test('are made once by all servers that begin at the same time', async () => {
    await Promise.all(Array.from({ length: 4 }, () => maintainEventMonths(app.db, clock.now(), 60)))
    expect(await months()).toHaveLength(5)
  })

  test('hold every moment: the first and the last of each', async () => {
    clock.advance({ days: 16 })
    const edges = [
      '2030-01-31T23:59:59.999Z',
      '2030-02-01T00:00:00Z',
      '2030-02-28T23:59:59.999Z',
      '2030-03-01T00:00:00Z',
    ]
    for (const edge of edges) expect(told(await send(edge))).toEqual(ACCEPTED)
    expect((await history(app, user)).map(({ timestamp }) => timestamp)).toEqual(
      edges.map((edge) => new Date(edge).toISOString()).reverse(),
    )
  })

  test('are added while events are written, and nobody waits', async () => {
    await send()
    await app.db.transaction(async (db) => {
      await db.query(new Sql('insert into events select app_id, user_id, $$x$$, at, id, received_at from events', []))
      clock.advance({ days: 60 })
      await maintainEventMonths(app.db, clock.now(), 365)
    })
    expect(await months()).toContain('events_2030_07')
  })
})

describe('the retention', () => {
  test('drops a month when all of it is a day too old, and keeps the rest', async () => {
    await send('2030-01-31T23:00:00Z')
    await send('2030-02-01T01:00:00Z')
    await send()
    // 60 days after January has ended, and a day to spare.
    clock.advance({ ms: Date.parse('2030-04-02T23:59:59.999Z') - clock.now().getTime() })
    await runJobs(app, clock, 60)
    expect((await months())[0]).toBe('events_2030_01')
    expect(await days()).toEqual(['2030-03-15', '2030-02-01', '2030-01-31'])
    clock.advance({ hours: 1 })
    await runJobs(app, clock, 60)
    expect((await months())[0]).toBe('events_2030_02')
    expect(await days()).toEqual(['2030-03-15', '2030-02-01'])
    expect(told(await send('2030-02-10T00:00:00Z'))).toEqual(ACCEPTED)
  })

  test('runs while events are written: none fails and none is lost', async () => {
    await send('2030-01-20T00:00:00Z')
    clock.advance({ days: 45 })
    const sends = Array.from({ length: 60 }, (_, n) => (n % 10 === 5 ? runJobs(app, clock, 60) : send()))
    for (const answer of await Promise.all(sends))
      if (typeof answer === 'object') expect(told(answer)).toEqual(ACCEPTED)
    expect((await months())[0]).toBe('events_2030_02')
    expect(await days()).toHaveLength(54)
  })

  test('gives way to a long query, and comes again', async () => {
    await send('2030-01-20T00:00:00Z')
    clock.advance({ days: 45 })
    await app.db.transaction(async (db) => {
      await db.query(sql`select count(*) from events`)
      await expect(maintainEventMonths(app.db, clock.now(), 60)).rejects.toThrow(/lock timeout/)
    })
    await maintainEventMonths(app.db, clock.now(), 60)
    expect((await months())[0]).toBe('events_2030_02')
  })
})
