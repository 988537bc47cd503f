import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  anEmailPort,
  anEngine,
  anEngineWorker,
  type FakeSender,
  messageRow,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { add, anOpenMessage, countWaiting, runDeliveries } from '../../../test/recipients.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { SubscriptionType } from '../../users/subscription.ts'
import { cancelMessages } from '../cancel.ts'
import { addRecipients } from '../recipients.ts'
import type { Engine } from './engine.ts'
import { expandLeftOver } from './expand-left-over.ts'
import { lockWaiting, writeProgress } from './expand-store.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let key: string

setStage((stage) => {
  ;({ app, clock, sender, engine, appId } = stage)
  key = stage.tenant.key
})

const stateOf = async (id: string) => (await messageRow(app.db, appId, id)).state

test('who is added is sent to at once, and the message stays open for others', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const openedAt = clock.now()
  const id = await anOpenMessage(engine, appId, { options: { ttl: 3_600 } })
  expect(await add(engine, appId, id, [one])).toBe(true)
  await runEngine(engine)
  clock.advance({ hours: 5 })
  const runId = newId()
  expect(await add(engine, appId, id, [{ ...two, runId }])).toBe(true)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  expect(sender.calls.map(({ parcel }) => parcel.token)).toEqual([one.token, two.token])
  const [, second] = await runDeliveries(app.db, appId, id)
  // Of the month in which the message was made, due when they were added, and for as long from then.
  const lastMoment = new Date(clock.now().getTime() + 3_600_000)
  const times = { expandAt: openedAt, dueAt: clock.now(), expiresAt: lastMoment }
  expect(second).toMatchObject({ subscriptionId: two.id, userId: two.userId, runId, ...times })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'expanding', expandAt: openedAt })
  expect(await countWaiting(app.db, appId, id)).toBe(0)
})

test.each<['push' | 'email' | 'sms', SubscriptionType, object]>([
  ['push', 'AndroidPush', { contents: { en: 'Bells' } }],
  ['email', 'Email', { isEmail: true, email_subject: 'Bells', email_body: '<p>Ring</p>' }],
  ['sms', 'SMS', { isSMS: true, contents: { en: 'Bells' } }],
])('by %s, to all that a user has of it, and every decision holds', async (channel, type, content) => {
  const [user] = (await recipients(engine, appId, 1, { type })) as [Recipient]
  const more = (await recipients(engine, appId, 1, { type })) as [Recipient]
  const [noMore, other] = [
    ...(await recipients(engine, appId, 1, { type })),
    ...(await recipients(engine, appId, 1, { type: type === 'SMS' ? 'Email' : 'SMS' })),
  ] as [Recipient, Recipient]
  await app.db.query(sql`
    update subscriptions set user_id = ${user.userId} where app_id = ${appId} and id = ${more[0].id}`)
  await app.db.query(sql`update subscriptions set enabled = false where app_id = ${appId} and id = ${noMore.id}`)
  const id = await anOpenMessage(engine, appId, { channel, content })
  await add(engine, appId, id, [user, noMore, other, { userId: newId() }])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2, 'skipped unsubscribed': 1 })
  expect(new Set(sender.calls.map(({ parcel }) => parcel.token))).toEqual(new Set([user.token, more[0].token]))
})

test('the hosts of mailboxes are looked up before anybody is expanded', async () => {
  const asked: string[] = []
  const email = { ...anEmailPort(), lookUpHosts: async (domains: readonly string[]) => void asked.push(...domains) }
  engine = anEngine({ db: app.db, clock, sender, email })
  const [one] = (await recipients(engine, appId, 1, { type: 'Email' })) as [Recipient]
  await app.db.query(sql`
    update subscriptions set token = 'a@Bell.Example' where app_id = ${appId} and id = ${one.id}`)
  const content = { isEmail: true, email_subject: 'Bells', email_body: '<p>Ring</p>' }
  const id = await anOpenMessage(engine, appId, { channel: 'email', content })
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(asked).toEqual(['bell.example'])
})

test('a second run of the same user is a second delivery; the same run again is none', async () => {
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await anOpenMessage(engine, appId)
  const [first, second] = [
    { ...one, runId: newId() },
    { ...one, runId: newId() },
  ]
  await add(engine, appId, id, [first])
  await add(engine, appId, id, [first, second])
  expect(await countWaiting(app.db, appId, id)).toBe(2)
  await runEngine(engine)
  await add(engine, appId, id, [first])
  await runEngine(engine)
  expect(await countWaiting(app.db, appId, id)).toBe(0)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  expect(sender.calls.map(({ parcel }) => parcel.token)).toEqual([one.token, one.token])
  const runs = (await runDeliveries(app.db, appId, id)).map(({ runId }) => runId)
  expect(new Set(runs)).toEqual(new Set([first.runId, second.runId]))
})

test('who is added in the next month is among the others, though no server saw that month before', async () => {
  clock = virtualClock('2031-01-31T23:59:30Z')
  engine = anEngine({ db: app.db, clock, sender })
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await anOpenMessage(engine, appId)
  clock.advance({ minutes: 1 })
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
})

test('many are expanded by ranges; whoever dies in between leaves nobody behind, and nobody is sent to twice', async () => {
  const people = await recipients(engine, appId, 10_500)
  const id = await anOpenMessage(engine, appId)
  await add(engine, appId, id, people)
  let hasDied = false
  const broken: Db = {
    ...engine.db,
    transaction: (run) =>
      engine.db.transaction(async (db) => {
        const result = await run(db)
        const { expandedCount } = await messageRow(db, appId, id)
        // The second range dies just before its commit.
        if (expandedCount === 10_500 && !hasDied) {
          hasDied = true
          throw new Error('died')
        }
        return result
      }),
  }
  const silent = { log: createLog('silent') }
  await anEngineWorker({ ...engine, db: broken, ...silent }, { db: engine.db, ...silent }).runDue()
  expect(hasDied).toBe(true)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'expanding', expandedCount: 10_000 })
  expect(await countWaiting(app.db, appId, id)).toBe(500)
  clock.advance({ minutes: 1 })
  await Promise.all([runEngine(engine), runEngine(engine)])
  expect(await tally(app.db, appId, id)).toEqual({ sent: 10_500 })
  expect(new Set(sender.calls.map(({ parcel }) => parcel.token)).size).toBe(10_500)
  expect(sender.calls).toHaveLength(10_500)
})

test('nobody is lost who is added while others are expanded', async () => {
  const people = await recipients(engine, appId, 200)
  const id = await anOpenMessage(engine, appId, { lane: 'direct' })
  const adding = Array.from({ length: 20 }, async (_, n) => {
    for (const one of people.slice(n * 10, n * 10 + 10)) await add(engine, appId, id, [one])
  })
  const isAdded = Promise.all(adding)
  await Promise.all([isAdded, runEngine(engine), runEngine(engine)])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 200 })
})

test('whoever adds somebody does not wait for an expansion, nor it for them', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const id = await anOpenMessage(engine, appId)
  await add(engine, appId, id, [one])
  await app.db.transaction(async (db) => {
    const list = [{ userId: two.userId, runId: newId() }]
    await addRecipients(engine, db, appId, { messageId: id, lane: 'bulk' }, list, clock.now())
    // The job itself is the adder's until it commits, so the expansion is begun here by hand.
    await engine.db.transaction(async (db) => {
      await db.query(sql`set local lock_timeout = '5s'`)
      const message = await lockWaiting(db, appId, id)
      const expandAt = message?.expandAt as Date
      await writeProgress(db, appId, [{ id, expandAt, expandedTo: null, count: 0, isDone: false }])
    })
  })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
})

test('closes an hour after its time, and is done like any other', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const id = await anOpenMessage(engine, appId)
  await add(engine, appId, id, [one])
  await runEngine(engine)
  clock.advance({ days: 1 })
  expect(await add(engine, appId, id, [two])).toBe(true)
  await runEngine(engine)
  clock.advance({ seconds: 1 })
  expect(await add(engine, appId, id, [two])).toBe(false)
  clock.advance({ minutes: 59, seconds: 58 })
  await expandLeftOver(engine)
  await runEngine(engine)
  expect(await stateOf(id)).toBe('expanding')
  clock.advance({ seconds: 1 })
  await expandLeftOver(engine)
  await runEngine(engine)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done', completedAt: clock.now() })
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
})

test('who waits without a job is found, also when the time is over', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const id = await anOpenMessage(engine, appId)
  const dropJobs = () => app.db.query(sql`delete from jobs where app_id = ${appId}`)
  await add(engine, appId, id, [one])
  await dropJobs()
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  await expandLeftOver(engine)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  await add(engine, appId, id, [two])
  await dropJobs()
  clock.advance({ days: 2 })
  await expandLeftOver(engine)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  expect(await stateOf(id)).toBe('done')
})

test('a message is not closed under somebody who is just adding to it', async () => {
  const [one] = (await recipients(engine, appId, 1)) as [Recipient]
  const id = await anOpenMessage(engine, appId)
  const inTime = clock.now()
  clock.advance({ days: 2 })
  await expandLeftOver(engine)
  const list = [{ userId: one.userId, runId: newId() }]
  // Without their own job, so that the one that is there can be run meanwhile.
  const queue = { ...engine.queue, enqueue: async () => {} }
  let closing: Promise<unknown> | undefined
  await app.db.transaction(async (db) => {
    expect(await addRecipients({ queue }, db, appId, { messageId: id, lane: 'bulk' }, list, inTime)).toBe(true)
    closing = runEngine(engine)
    await until(async () => (await countBlocked()) > 0)
  })
  await closing
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(await stateOf(id)).toBe('done')
})

async function countBlocked(): Promise<number> {
  const [row] = await app.db.query<{ n: number }>(sql`
    select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%messages%'`)
  return row?.n ?? 0
}

async function until(isSo: () => Promise<boolean>) {
  for (let i = 0; !(await isSo()); i++) {
    if (i > 3_000) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('canceled, nobody can be added, who waits is let go, and what is pending is closed', async () => {
  const [one, two, three] = (await recipients(engine, appId, 3)) as [Recipient, Recipient, Recipient]
  sender.script(two.token, { kind: 'retry', reason: 'busy' })
  const id = await anOpenMessage(engine, appId)
  const untouched = await anOpenMessage(engine, appId)
  await add(engine, appId, id, [one, two])
  await runEngine(engine)
  await add(engine, appId, id, [three])
  await app.db.transaction((db) => cancelMessages(db, engine.queue, appId, [id, newId()], clock.now()))
  expect(await add(engine, appId, id, [three])).toBe(false)
  await expandLeftOver(engine)
  clock.advance({ minutes: 10 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, canceled: 1 })
  expect(await countWaiting(app.db, appId, id)).toBe(0)
  expect(await stateOf(id)).toBe('canceled')
  expect(await stateOf(untouched)).toBe('expanding')
  expect(await add(engine, appId, newId(), [three])).toBe(false)
})

test('what is done stays done, and what stands in lists is not canceled so', async () => {
  const id = await anOpenMessage(engine, appId)
  clock.advance({ days: 2 })
  await expandLeftOver(engine)
  await runEngine(engine)
  const listed = await anOpenMessage(engine, appId)
  await app.db.query(sql`update messages set is_listed = true where app_id = ${appId} and id = ${listed}`)
  await app.db.transaction((db) => cancelMessages(db, engine.queue, appId, [id, listed], clock.now()))
  expect([await stateOf(id), await stateOf(listed)]).toEqual(['done', 'expanding'])
})

test('a throttle spreads those who wait at the same time, not all of the day', async () => {
  const people = await recipients(engine, appId, 6)
  const id = await anOpenMessage(engine, appId, { options: { throttlePerMinute: 1 } })
  await add(engine, appId, id, people.slice(0, 3))
  for (let minute = 0; minute < 10; minute++) {
    await runEngine(engine)
    clock.advance({ minutes: 1 })
  }
  expect(sender.calls).toHaveLength(3)
  const later = clock.now().getTime()
  for (const one of people.slice(3)) {
    await add(engine, appId, id, [one])
    await runEngine(engine)
  }
  const due = (await runDeliveries(app.db, appId, id)).slice(3).map(({ dueAt }) => (dueAt.getTime() - later) / 60_000)
  expect(due).toEqual([0, 1, 2])
})

test('another run counts as another message for a frequency cap', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const capped = await app.request(`/apps/${appId}/delivery_settings`, {
    method: 'PUT',
    headers: { authorization: `Key ${key}` },
    body: { frequency_caps: [{ channel: 'push', count: 1, window: 1, unit: 'days' }] },
  })
  expect(capped.status).toBe(200)
  const id = await anOpenMessage(engine, appId)
  await app.db.query(sql`update subscriptions set user_id = ${one.userId} where app_id = ${appId} and id = ${two.id}`)
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2, 'skipped frequency_cap': 2 })
})
