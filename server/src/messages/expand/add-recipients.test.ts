import { expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  anEmailPort,
  anEngine,
  deliveriesOf,
  type FakeSender,
  messageRow,
  type Recipient,
  recipients,
  runEngine,
  setStage,
  tally,
} from '../../../test/engine.ts'
import { add, addWith, anOpenMessage, recipientsOf, runDeliveries } from '../../../test/recipients.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import { cancelMessages } from '../cancel.ts'
import type { Engine } from '../engine/types.ts'
import { findReadyProviders } from './add-recipients.ts'
import { closeOpenMessages } from './close-open-messages.ts'
import { prepareUsers } from './prepare-candidates.ts'

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
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([one.token, two.token])
  const [, second] = await runDeliveries(app.db, appId, id)
  // Of the month in which the message was made, due when they were added, and for as long from then.
  const lastMoment = new Date(clock.now().getTime() + 3_600_000)
  const times = { expandAt: openedAt, dueAt: clock.now(), expiresAt: lastMoment }
  expect(second).toMatchObject({ subscriptionId: two.id, userId: two.userId, runId, ...times })
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'expanding', expandAt: openedAt })
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
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token))).toEqual(new Set([user.token, more[0].token]))
})

test('the hosts of the mailboxes of users can be looked up before', async () => {
  const asked: string[] = []
  const email = { ...anEmailPort(), lookUpMailHosts: async (domains: readonly string[]) => void asked.push(...domains) }
  engine = anEngine({ db: app.db, clock, sender, email })
  const [one, two] = (await recipients(engine, appId, 2, { type: 'Email' })) as [Recipient, Recipient]
  await app.db.query(sql`
    update subscriptions set token = 'a@Bell.Example' where app_id = ${appId} and id = ${one.id}`)
  await prepareUsers(engine, appId, [one.userId])
  expect(asked).toEqual(['bell.example'])
  expect(two.token).not.toContain('bell.example')
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
  expect(await tally(app.db, appId, id)).toEqual({ pending: 2 })
  await runEngine(engine)
  await add(engine, appId, id, [first])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  expect(sender.calls.map(({ outgoing }) => outgoing.token)).toEqual([one.token, one.token])
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

/** As one who moves runs does it: what comes after may fail. */
async function adding(
  id: string,
  users: readonly Recipient[],
  { part, meanwhile }: { part?: number; meanwhile: () => Promise<void> },
) {
  const ready = await findReadyProviders(engine, appId)
  return engine.db.transaction(async (db) => {
    const isOpen = await addWith(engine, db, appId, ready, recipientsOf(id, users), part)
    await meanwhile()
    return isOpen
  })
}

test('whoever dies before the commit has added nobody, and who adds them again sends to each once', async () => {
  const people = await recipients(engine, appId, 50)
  const id = await anOpenMessage(engine, appId)
  const dying = adding(id, people, { meanwhile: () => Promise.reject(new Error('died')) })
  await expect(dying).rejects.toThrow('died')
  expect(await tally(app.db, appId, id)).toEqual({})
  expect(await runEngine(engine)).toBe(0)
  await add(engine, appId, id, people)
  await Promise.all([runEngine(engine), runEngine(engine)])
  expect(await tally(app.db, appId, id)).toEqual({ sent: 50 })
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token)).size).toBe(50)
  expect(sender.calls).toHaveLength(50)
})

test('nobody is lost who is added while others are sent to', async () => {
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

test('several messages are added to at once, all or none', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  const ids = [await anOpenMessage(engine, appId), await anOpenMessage(engine, appId)] as const
  const toBoth = [...recipientsOf(ids[0], [one]), ...recipientsOf(ids[1], [one, two])]
  const ready = await findReadyProviders(engine, appId)
  const toNone = [...toBoth, ...recipientsOf(newId(), [one])]
  expect(await engine.db.transaction((db) => addWith(engine, db, appId, ready, toNone))).toBe(false)
  expect(await tally(app.db, appId, ids[0])).toEqual({})
  expect(await engine.db.transaction((db) => addWith(engine, db, appId, ready, toBoth))).toBe(true)
  await runEngine(engine)
  expect(await tally(app.db, appId, ids[0])).toEqual({ sent: 1 })
  expect(await tally(app.db, appId, ids[1])).toEqual({ sent: 2 })
})

test('who moves another part adds without waiting', async () => {
  const people = await recipients(engine, appId, 40)
  const id = await anOpenMessage(engine, appId)
  // But for the jobs, which are the last of both.
  const first = { ...engine, queue: { ...engine.queue, enqueue: async () => {} } }
  const ready = await findReadyProviders(engine, appId)
  await engine.db.transaction(async (db) => {
    await addWith(first, db, appId, ready, recipientsOf(id, people.slice(0, 20)), 0)
    expect(await adding(id, people.slice(20), { part: 1, meanwhile: async () => {} })).toBe(true)
  })
  expect(await tally(app.db, appId, id)).toEqual({ pending: 40 })
})

test('few go into one line together, many into all', async () => {
  const people = await recipients(engine, appId, 600)
  const linesOf = async (id: string) => new Set((await deliveriesOf(app.db, appId, id)).map(({ line }) => line)).size
  const id = await anOpenMessage(engine, appId)
  await add(engine, appId, id, people.slice(0, 60))
  expect(await linesOf(id)).toBe(1)
  await add(engine, appId, id, people.slice(60))
  expect(await linesOf(id)).toBe(4)
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 600 })
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
  await closeOpenMessages(engine)
  await runEngine(engine)
  expect(await stateOf(id)).toBe('expanding')
  clock.advance({ seconds: 1 })
  await closeOpenMessages(engine)
  await runEngine(engine)
  expect(await messageRow(app.db, appId, id)).toMatchObject({ state: 'done', completedAt: clock.now() })
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
})

test('a message is not closed under somebody who is just adding to it', async () => {
  const people = await recipients(engine, appId, 1)
  const id = await anOpenMessage(engine, appId)
  const late = { ...engine, clock: virtualClock(new Date(clock.now().getTime() + 2 * 86_400_000).toISOString()) }
  let closing: Promise<unknown> | undefined
  await adding(id, people, {
    async meanwhile() {
      closing = closeOpenMessages(late)
      await until(async () => (await countBlocked()) > 0)
    },
  })
  await closing
  expect(await stateOf(id)).toBe('sending')
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1 })
  expect(await stateOf(id)).toBe('done')
})

test('a message is not canceled under somebody who is just adding to it: they are closed with the others', async () => {
  const people = await recipients(engine, appId, 3)
  const id = await anOpenMessage(engine, appId)
  let canceling: Promise<unknown> | undefined
  await adding(id, people, {
    async meanwhile() {
      canceling = app.db.transaction((db) => cancelMessages(db, engine.queue, appId, [id], clock.now()))
      await until(async () => (await countBlocked()) > 0)
    },
  })
  await canceling
  await runEngine(engine)
  expect(sender.calls).toEqual([])
  expect(await tally(app.db, appId, id)).toEqual({ canceled: 3 })
})

test('whoever comes while a message is being canceled adds nobody', async () => {
  const people = await recipients(engine, appId, 3)
  const id = await anOpenMessage(engine, appId)
  let coming: Promise<boolean> | undefined
  await app.db.transaction(async (db) => {
    await cancelMessages(db, engine.queue, appId, [id], clock.now())
    coming = add(engine, appId, id, people)
    await until(async () => (await countBlocked()) > 0)
  })
  expect(await coming).toBe(false)
  expect(await tally(app.db, appId, id)).toEqual({})
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

test('canceled, nobody can be added, and what is pending is closed', async () => {
  const [one, two, three] = (await recipients(engine, appId, 3)) as [Recipient, Recipient, Recipient]
  sender.script(two.token, { kind: 'retry', reason: 'busy' })
  const id = await anOpenMessage(engine, appId)
  const untouched = await anOpenMessage(engine, appId)
  await add(engine, appId, id, [one, two])
  await runEngine(engine)
  await add(engine, appId, id, [three])
  await app.db.transaction((db) => cancelMessages(db, engine.queue, appId, [id, newId()], clock.now()))
  expect(await add(engine, appId, id, [three])).toBe(false)
  await closeOpenMessages(engine)
  clock.advance({ minutes: 10 })
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 1, canceled: 2 })
  expect(await stateOf(id)).toBe('canceled')
  expect(await stateOf(untouched)).toBe('expanding')
  expect(await add(engine, appId, newId(), [three])).toBe(false)
})

test('what is done stays done, and what stands in lists is not canceled so', async () => {
  const id = await anOpenMessage(engine, appId)
  clock.advance({ days: 2 })
  await closeOpenMessages(engine)
  await runEngine(engine)
  const listed = await anOpenMessage(engine, appId)
  await app.db.query(sql`update messages set is_listed = true where app_id = ${appId} and id = ${listed}`)
  await app.db.transaction((db) => cancelMessages(db, engine.queue, appId, [id, listed], clock.now()))
  expect([await stateOf(id), await stateOf(listed)]).toEqual(['done', 'expanding'])
})

const set = async (settings: object) => {
  const headers = { authorization: `Key ${key}` }
  const answer = await app.request(`/apps/${appId}/delivery_settings`, { method: 'PUT', headers, body: settings })
  expect(answer.status).toBe(200)
}

test('a throttle spreads those who wait at the same time, not all of the day', async () => {
  const people = await recipients(engine, appId, 6)
  await set({ throttle_per_minute: 1 })
  const id = await anOpenMessage(engine, appId)
  await add(engine, appId, id, people.slice(0, 3))
  for (let minute = 0; minute < 10; minute++) {
    await runEngine(engine)
    clock.advance({ minutes: 1 })
  }
  expect(sender.calls).toHaveLength(3)
  const later = clock.now().getTime()
  // At once, by two who each have a part: every place is taken once.
  const [one, two, three] = people.slice(3) as [Recipient, Recipient, Recipient]
  await Promise.all([[one], [two, three]].map((list, part) => adding(id, list, { part, meanwhile: async () => {} })))
  const due = (await runDeliveries(app.db, appId, id)).slice(3).map(({ dueAt }) => (dueAt.getTime() - later) / 60_000)
  expect(due).toEqual([0, 1, 2])
})

test('another run counts as another message for a frequency cap', async () => {
  const [one, two] = (await recipients(engine, appId, 2)) as [Recipient, Recipient]
  await set({ frequency_caps: [{ channel: 'push', count: 1, window: 1, unit: 'days' }] })
  const id = await anOpenMessage(engine, appId)
  await app.db.query(sql`update subscriptions set user_id = ${one.userId} where app_id = ${appId} and id = ${two.id}`)
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2 })
  await add(engine, appId, id, [one])
  await runEngine(engine)
  expect(await tally(app.db, appId, id)).toEqual({ sent: 2, 'skipped frequency_cap': 2 })
})
