// Which message a run is sent. Devices show a message once: what a user is to see again must be another one.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { anEmailPort, closeRenderer, fakeSender } from '../../../test/engine.ts'
import { anAppOf, aTagSegment } from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { aJourney, remove, someReferences, update } from '../../../test/journeys.ts'
import { aName, aUser, type MadeUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createQueue } from '../../queue/enqueue.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import { advanceJobs } from '../jobs.ts'
import { RUN_SHARDS } from '../runs/run.ts'
import { insertRuns } from '../runs/run-store.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let app: TestApp
let pushId: string
let emailId: string
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})
beforeEach(async () => {
  app = await anAppOf(server)
  ;({ pushId, emailId } = await someReferences(app))
})

const work = () => aWorker(app, clock).runDue()
const ENTRY = 'came in'

async function active(fields: object = {}) {
  const nodes = [{ kind: 'send_push', template_id: pushId }]
  const { id } = await aJourney(app, { audience: { kind: 'event_trigger', name: ENTRY }, nodes, ...fields })
  expect((await update(app, id, { state: 'active' })).status).toBe(200)
  await work()
  return id as string
}

const somebody = (tags: object = {}) =>
  aUser(app, { properties: { tags }, subscriptions: [{ type: 'AndroidPush', token: aName('token') }] })

const come = async (...users: MadeUser[]) => {
  await record(
    app,
    users.map(({ externalId }) => ({ name: ENTRY, external_id: externalId })),
  )
  await work()
}

/** Ids of the messages, in the order in which they were sent. */
const messagesTo = async (user: MadeUser) => {
  const found = await app.db.query<{ messageId: string }>(sql`
    select message_id from deliveries where app_id = ${app.tenant.id} and user_id = ${user.id} order by due_at`)
  return found.map(({ messageId }) => messageId)
}

const passesLeft = () =>
  app.db.query(sql`select user_id, day, passes from journey_passes where app_id = ${app.tenant.id}`)

test('a user who comes by again on the same day gets another message, which is that of all who do', async () => {
  await active()
  const [a, b] = [await somebody(), await somebody()]
  await come(a)
  clock.advance({ minutes: 10 })
  await come(a, b)
  clock.advance({ minutes: 10 })
  await come(b)
  const [first, second] = await messagesTo(a)
  expect(new Set([first, second]).size).toBe(2)
  expect(await messagesTo(b)).toEqual([first, second])
})

test('so does one who comes by several times at once', async () => {
  await active()
  const [a, b] = [await somebody(), await somebody()]
  await come(a, b, a, a)
  const messages = await messagesTo(a)
  expect(new Set(messages).size).toBe(3)
  expect(messages).toContain((await messagesTo(b))[0])
})

test('the next day begins with the first again', async () => {
  await active()
  const user = await somebody()
  await come(user, user)
  clock.advance({ days: 1 })
  await come(user)
  const another = await somebody()
  await come(another)
  const messages = await messagesTo(user)
  expect(new Set(messages).size).toBe(3)
  expect(await messagesTo(another)).toEqual(messages.slice(2))
})

test('who enters again within a day does too', async () => {
  const segment = await aTagSegment(app)
  const user = await somebody(segment.tags)
  const audience = { kind: 'segment', included_segment_ids: [segment.id] }
  await active({ audience, reentry_rules: { duration_seconds: 600 } })
  clock.advance({ minutes: 10 })
  await work()
  const messages = await messagesTo(user)
  expect([messages.length, new Set(messages).size]).toEqual([2, 2])
})

test('an email needs no other one', async () => {
  await active({ nodes: [{ kind: 'send_email', template_id: emailId }] })
  const user = await aUser(app, { subscriptions: [{ type: 'Email', token: `${aName()}@example.com` }] })
  await come(user, user)
  const messages = await messagesTo(user)
  expect([messages.length, new Set(messages).size]).toEqual([2, 1])
  expect(await passesLeft()).toEqual([])
})

test('where the mailboxes are is looked up before anybody is sent mail, and only of those who are', async () => {
  await active({ nodes: [{ kind: 'send_email', template_id: emailId }] })
  await active()
  const [a, b, other] = await Promise.all(
    ['one.example', 'two.example', 'other.example'].map((domain) =>
      aUser(app, { subscriptions: [{ type: 'Email', token: `${aName()}@${domain}` }] }),
    ),
  )
  await record(
    app,
    [a, b].map((user) => ({ name: ENTRY, external_id: user?.externalId })),
  )
  const asked: string[][] = []
  const { db, tenant } = app
  const lookUpHosts = async (domains: readonly string[]) => {
    const [row] = await db.query<{ total: number }>(sql`
      select count(*) as total from deliveries where app_id = ${tenant.id}`)
    expect(row?.total).toBe(0)
    asked.push([...domains].sort())
  }
  await aWorker(app, clock, { email: { ...anEmailPort(), lookUpMailHosts: lookUpHosts } }).runDue()
  expect(asked).toEqual([['one.example', 'two.example']])
  expect(await messagesTo(a as MadeUser)).toHaveLength(1)
  expect(await messagesTo(other as MadeUser)).toEqual([])
})

test('whoever moves runs of the same users at once gives each another one', async () => {
  const journeyId = await active()
  const users = await Promise.all(Array.from({ length: 30 }, () => somebody()))
  const now = clock.now()
  const { db, tenant } = app
  for (const part of RUN_SHARDS) {
    const runs = users.map(({ id }) => {
      const event = { id: newId(), name: ENTRY, at: now.toISOString(), properties: {} }
      return { id: newId(), journeyId, userId: id, event }
    })
    await insertRuns(db, tenant.id, part, runs, now)
  }
  const jobs = advanceJobs(tenant.id, { id: journeyId, audience: { kind: 'event_trigger' } })
  await createQueue({ clock, newId }).enqueue(db, jobs)
  await Promise.all(RUN_SHARDS.map(() => work()))
  await work()
  for (const user of users) expect(new Set(await messagesTo(user)).size).toBe(RUN_SHARDS.length)
})

test('whoever dies while moving runs has neither moved nor sent to them; two others do both, once', async () => {
  const journeyId = await active()
  const users = await Promise.all(Array.from({ length: 20 }, () => somebody()))
  await record(
    app,
    users.map(({ externalId }) => ({ name: ENTRY, external_id: externalId })),
  )
  const { db, tenant } = app
  const stateOfAll = async (db: Db) => {
    const [row] = await db.query<{ waiting: number; sent: number }>(sql`
      select (select count(*) from journey_runs where app_id = ${tenant.id} and journey_id = ${journeyId} and state = 'waiting') as waiting,
        (select count(*) from deliveries where app_id = ${tenant.id}) as sent`)
    return row
  }
  let hasDied = false
  const dying: TestApp['db'] = {
    ...db,
    transaction: (run) =>
      db.transaction(async (db) => {
        const result = await run(db)
        if (hasDied || (await stateOfAll(db))?.sent === 0) return result
        hasDied = true
        throw new Error('died')
      }),
  }
  await aWorker({ db: dying }, clock).runDue()
  expect(hasDied).toBe(true)
  expect(await stateOfAll(db)).toEqual({ waiting: 20, sent: 0 })
  clock.advance({ minutes: 1 })
  const sender = fakeSender()
  await Promise.all([aWorker(app, clock, { sender }).runDue(), aWorker(app, clock, { sender }).runDue()])
  await work()
  expect(await stateOfAll(db)).toEqual({ waiting: 0, sent: 20 })
  for (const user of users) expect(await messagesTo(user)).toHaveLength(1)
  expect(new Set(sender.calls.map(({ outgoing }) => outgoing.token)).size).toBe(sender.calls.length)
})

test('what was counted goes with the user and with the journey', async () => {
  const id = await active()
  const [a, b] = [await somebody(), await somebody()]
  await come(a, b)
  expect(await passesLeft()).toHaveLength(2)
  expect((await app.app(a.path, { method: 'DELETE' })).status).toBe(202)
  clock.advance({ minutes: 10 })
  await work()
  expect(await passesLeft()).toMatchObject([{ userId: b.id }])
  await update(app, id, { state: 'archived' })
  await work()
  expect(await passesLeft()).toEqual([])
  const other = await active()
  await come(b)
  expect(await passesLeft()).toHaveLength(1)
  await remove(app, other)
  await work()
  expect(await passesLeft()).toEqual([])
})
