import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngine,
  anEngineWorker,
  deliveriesOf,
  type FakeSender,
  messageRow,
  only,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { Engine } from '../engine/types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
})

const filtersOf = (...filters: object[]) => ({ kind: 'filters' as const, filters: filters as never, excluded: [] })
const tagged = (level: string) => filtersOf({ field: 'tag', key: 'level', relation: '=', value: level })
const times = (list: { dueAt: Date }[]) => list.map(({ dueAt }) => dueAt.toISOString())

test('everybody of a large audience gets one delivery, and all are sent', async () => {
  await recipients(engine, appId, 10_500)
  await recipients(engine, appId, 20, { type: 'AndroidPush' })
  const id = await aMessage(engine, appId, {})
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 10_520 })
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token)).size).toBe(10_520)
  expect(sender.calls).toHaveLength(10_520)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done', expandedCount: 10_520 })
})

test('each candidate has a decision: wanted or not, by somebody or by nobody', async () => {
  const [wants, doesNot] = await recipients(engine, appId, 2)
  await app.db.query(
    sql`update subscriptions set notification_types = -2 where app_id = ${appId} and id = ${doesNot?.id}`,
  )
  await recipients(engine, appId, 3, { type: 'ChromeExtensionPush' })
  await recipients(engine, appId, 4, { type: 'Email' })
  await recipients(engine, appId, 5, { type: 'AndroidPush' })
  sender.ready = async () => new Set(['apns'] as const)
  const push = await aMessage(engine, appId, {})
  const email = await aMessage(engine, appId, { channel: 'email' })
  await runEngine(engine)
  expect(await tally(app.db, appId, push)).toEqual({
    ...{ sent: 1, 'skipped unsubscribed': 1 },
    ...{ 'skipped not_configured': 5, 'skipped not_supported': 3 },
  })
  expect(await tally(app.db, appId, email)).toEqual({ 'skipped not_configured': 4 })
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([wants?.token])
  expect(await messageRow(app.db, appId, email)).toMatchObject({ state: 'done' })
})

test('filters, platforms and excluded segments say who is meant', async () => {
  const [gold] = await recipients(engine, appId, 1, { tags: { level: 'gold' } })
  await recipients(engine, appId, 1, { tags: { level: 'tin' } })
  await recipients(engine, appId, 1, { tags: { level: 'gold' }, type: 'AndroidPush' })
  const id = await aMessage(engine, appId, { audience: tagged('gold'), options: { platforms: ['iOSPush'] } })
  await runEngine(engine)
  expect((await deliveriesOf(app.db, appId, id)).map((it) => it.subscriptionId)).toEqual([gold?.id])
})

test('a message for a segment that is gone goes to nobody, and one that excludes it neither', async () => {
  await recipients(engine, appId, 2, { tags: { level: 'gold' } })
  const gone = { id: '00000000-0000-4000-8000-00000000dead', name: 'gone' }
  const to = await aMessage(engine, appId, { audience: { kind: 'segments', included: [gone], excluded: [] } })
  const not = await aMessage(engine, appId, { audience: { ...tagged('gold'), excluded: [gone] } })
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  for (const id of [to, not])
    expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done', expandedCount: 0 })
})

test('many direct messages are expanded together, aliases lead to all subscriptions, and nobody is named twice', async () => {
  const [one, two] = await recipients(engine, appId, 2)
  await app.db.query(sql`
    insert into aliases (app_id, label, value, user_id) values (${appId}, 'external_id', 'alice', ${one?.userId})`)
  const named = (aliases: Record<string, string[]>) => ({ kind: 'aliases', field: 'include_aliases', aliases }) as const
  const ids = [
    await aMessage(engine, appId, { lane: 'direct', audience: named({ external_id: ['alice', 'nobody'] }) }),
    await aMessage(engine, appId, {
      lane: 'direct',
      audience: named({ onesignal_id: [two?.userId as string, 'no id'] }),
    }),
    await aMessage(engine, appId, { lane: 'direct', audience: only(one?.id as string, one?.id as string) }),
  ]
  await runEngine(engine)
  const found = await Promise.all(ids.map((id) => deliveriesOf(app.db, appId, id)))
  expect(found.map((list) => list.map((it) => it.subscriptionId))).toEqual([[one?.id], [two?.id], [one?.id]])
  for (const id of ids) expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('a scheduled message waits for its time', async () => {
  await recipients(engine, appId, 1)
  const id = await aMessage(engine, appId, { sendAfter: new Date(clock.now().getTime() + 60_000) })
  await runEngine(engine)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'scheduled', expandAt: null })
  clock.advance({ minutes: 1 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('expansion goes on where it was broken off, by whoever comes next', async () => {
  await recipients(engine, appId, 25_000)
  const id = await aMessage(engine, appId, {})
  const broken: Db = {
    ...engine.db,
    transaction: (run) =>
      engine.db.transaction(async (db) => {
        const result = await run(db)
        const [row] = await db.query<{ n: number }>(
          sql`select expanded_count as n from messages where app_id = ${appId}`,
        )
        // The second range dies just before its commit.
        if (row?.n === 20_000 && !hasDied) {
          hasDied = true
          throw new Error('died')
        }
        return result
      }),
  }
  let hasDied = false
  const dying = anEngineWorker(
    { ...engine, db: broken, log: createLog('silent') },
    { db: engine.db, log: createLog('silent') },
  )
  await dying.runDue()
  expect(hasDied).toBe(true)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'expanding', expandedCount: 10_000 })
  // People come and go meanwhile: who came is not missed twice, who went is not sent anything.
  const late = await recipients(engine, appId, 100)
  clock.advance({ minutes: 1 })
  await Promise.all([runEngine(engine), runEngine(engine)])
  const counts = await tally(app.db, appId, id)
  expect(counts.sent).toBeGreaterThanOrEqual(25_000)
  expect(counts.sent).toBeLessThanOrEqual(25_000 + late.length)
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token)).size).toBe(sender.calls.length)
})

test('throttled: so many a minute', async () => {
  await recipients(engine, appId, 5)
  const [gone] = await recipients(engine, appId, 1)
  await app.db.query(sql`update subscriptions set enabled = false where app_id = ${appId} and id = ${gone?.id}`)
  const start = clock.now().getTime()
  const id = await aMessage(engine, appId, { options: { throttlePerMinute: 2 } })
  await runEngine(engine)
  const waiting = (await deliveriesOf(app.db, appId, id)).filter(({ state }) => state !== 'skipped')
  expect(waiting.map(({ dueAt }) => (dueAt.getTime() - start) / 1_000)).toEqual([0, 30, 60, 90, 120])
  expect(sender.calls).toHaveLength(1)
  for (let minute = 0; minute < 4; minute++) {
    clock.advance({ seconds: 30 })
    await runEngine(engine)
    expect(sender.calls).toHaveLength(minute + 2)
  }
  expect(await tally(app.db, appId, id)).toEqual({ sent: 5, 'skipped unsubscribed': 1 })
})

test("an hour of each user's own, also in the nights in which clocks are put forward and back", async () => {
  // New York puts its clocks forward on 2030-03-10 at 2:00, from 07:00Z on it is UTC-4.
  clock = virtualClock('2030-03-09T12:00:00Z')
  engine = anEngine({ db: app.db, clock, sender })
  const zones = ['America/New_York', 'Europe/Paris', 'Asia/Kolkata', undefined]
  const people = []
  for (const timezone of zones) people.push(...(await recipients(engine, appId, 1, timezone ? { timezone } : {})))
  const options = { delayedOption: 'timezone', timeOfDay: 2.5 * 3600 } as const
  const forward = await aMessage(engine, appId, { options })
  await runEngine(engine)
  const due = await deliveriesOf(app.db, appId, forward)
  const byPerson = people.map(({ id }) => due.find((it) => it.subscriptionId === id) as { dueAt: Date })
  expect(times(byPerson)).toEqual([
    // 2:30 does not exist that night: the moment at which clocks are put forward.
    '2030-03-10T07:00:00.000Z',
    '2030-03-10T01:30:00.000Z',
    '2030-03-09T21:00:00.000Z',
    '2030-03-10T02:30:00.000Z',
  ])
  clock.advance({ hours: 9 })
  await runEngine(engine)
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([people[2]?.token])
  clock.advance({ hours: 10 })
  await runEngine(engine)
  expect(await tally(app.db, appId, forward)).toEqual({ sent: 4 })

  // Paris puts them back on 2030-10-27 at 3:00: 2:30 comes twice, and the first is meant.
  clock = virtualClock('2030-10-26T12:00:00Z')
  engine = anEngine({ db: app.db, clock, sender })
  const back = await aMessage(engine, appId, { options, audience: only(people[1]?.id as string) })
  await runEngine(engine)
  expect(times(await deliveriesOf(app.db, appId, back))).toEqual(['2030-10-27T00:30:00.000Z'])
})

test('at the time of day at which each was last there', async () => {
  const at = (hours: number) => new Date(clock.now().getTime() - 5 * 86_400_000 + hours * 3_600_000)
  const [later] = await recipients(engine, appId, 1, { lastActive: at(2) })
  const [before] = await recipients(engine, appId, 1, { lastActive: at(-1) })
  const start = clock.now().getTime()
  const id = await aMessage(engine, appId, { options: { delayedOption: 'last-active' } })
  await runEngine(engine)
  const due = await deliveriesOf(app.db, appId, id)
  const hours = due.map(({ subscriptionId, dueAt }) => [subscriptionId, (dueAt.getTime() - start) / 3_600_000])
  expect(hours).toEqual([
    [later?.id, 2],
    [before?.id, 23],
  ])
})

test('a test goes to test users alone', async () => {
  const [tester, other] = await recipients(engine, appId, 2)
  await app.db.query(sql`update users set test_user_name = 'me' where app_id = ${appId} and id = ${tester?.userId}`)
  const audience = only(tester?.id as string, other?.id as string)
  const id = await aMessage(engine, appId, { lane: 'direct', audience, options: { isTest: true } })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, 'skipped no_test_user': 1 })
})

test('without an hour, each at the time of day of send_after, to the second: whose clock shows it now is not late', async () => {
  clock = virtualClock('2030-01-01T12:00:00.750Z')
  engine = anEngine({ db: app.db, clock, sender })
  const [utc] = (await recipients(engine, appId, 1, { timezone: 'UTC' })) as [Recipient]
  const [none] = (await recipients(engine, appId, 1)) as [Recipient]
  const [paris] = (await recipients(engine, appId, 1, { timezone: 'Europe/Paris' })) as [Recipient]
  const options = { delayedOption: 'timezone' } as const
  const now = await aMessage(engine, appId, { options })
  const scheduled = await aMessage(engine, appId, { options, sendAfter: new Date('2030-01-01T20:30:00.250Z') })
  await runEngine(engine)
  const dueOf = async (id: string) => {
    const due = await deliveriesOf(app.db, appId, id)
    return times([utc, none, paris].map(({ id }) => due.find((it) => it.subscriptionId === id) as { dueAt: Date }))
  }
  expect(await dueOf(now)).toEqual(['2030-01-01T12:00:00.000Z', '2030-01-01T12:00:00.000Z', '2030-01-02T11:00:00.000Z'])
  expect(await tally(app.db, appId, now)).toEqual({ sent: 2, pending: 1 })
  const tokens = new Set(sender.calls.map(({ outgoing }) => outgoing.token))
  expect([utc, none, paris].map(({ token }) => tokens.has(token))).toEqual([true, true, false])
  clock.advance({ hours: 9 })
  await runEngine(engine)
  expect(await dueOf(scheduled)).toEqual([
    '2030-01-01T20:30:00.000Z',
    '2030-01-01T20:30:00.000Z',
    '2030-01-02T19:30:00.000Z',
  ])
})
