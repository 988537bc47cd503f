// Sends of one run to the same subscription arrive in the order of their nodes, whatever happens to the earlier one.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { type Call, cancel, closeRenderer, type FakeSender, fakeSender } from '../../../test/engine.ts'
import { anAppOf } from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { aReadyJourney, update } from '../../../test/journeys.ts'
import { aPush, templatesOf } from '../../../test/templates.ts'
import { aName, aUser, type MadeUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

const ENTRY = 'came in'
const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let app: TestApp
let sender: FakeSender

beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})
beforeEach(async () => {
  app = await anAppOf(server)
  sender = fakeSender()
})

const work = () => aWorker(app, clock, { sender }).runDue()

async function push(text: string) {
  const { body } = await templatesOf(app).create(aPush({ contents: { en: text } }))
  return { kind: 'send_push', template_id: body.id as string }
}

async function live(nodes: unknown[]) {
  const journey = await aReadyJourney(app, { audience: { kind: 'event_trigger', name: ENTRY }, nodes })
  expect((await update(app, journey.id, { state: 'active' })).status).toBe(200)
  await work()
  return journey
}

/** Of the app of this test: others may still have something to send. */
let tokens: string[]

function people(count: number) {
  tokens = Array.from({ length: count }, () => aName('token'))
  return Promise.all(tokens.map((token) => aUser(app, { subscriptions: [{ type: 'AndroidPush', token }] })))
}

async function enter(users: readonly MadeUser[]) {
  await record(
    app,
    users.map(({ externalId }) => ({ name: ENTRY, external_id: externalId })),
  )
  await work()
}

const textOf = ({ outgoing }: Call) => /Push (\w)/.exec(JSON.stringify(outgoing.content))?.[1] ?? ''

/** What each address was handed, in that order. */
const handed = () =>
  tokens.map((token) =>
    sender.calls
      .filter(({ outgoing }) => outgoing.token === token)
      .map(textOf)
      .join(''),
  )

const inBranches = (node: unknown) => ({
  kind: 'split_range',
  branches: [
    { weight: 50, nodes: [node] },
    { weight: 50, nodes: [node] },
  ],
})

const RETRY: ChannelOutcome = { kind: 'retry', reason: 'busy', afterMs: 60_000 }

/** The first attempt at `text` ends so. */
function firstOf(text: string, outcome: ChannelOutcome) {
  const seen = new Set<string>()
  sender.otherwise = (call) => {
    if (textOf(call) !== text || seen.has(call.outgoing.token)) return { kind: 'sent' }
    seen.add(call.outgoing.token)
    return outcome
  }
}

test('a push in a branch is settled before the push after it is handed over', async () => {
  await live([inBranches(await push('Push A')), await push('Push B')])
  const [open, early] = [new Set<string>(), new Set<string>()]
  sender.otherwise = async ({ outgoing }) => {
    if (open.has(outgoing.token)) early.add(outgoing.token)
    open.add(outgoing.token)
    await Promise.resolve()
    await Promise.resolve()
    open.delete(outgoing.token)
    return { kind: 'sent' }
  }
  await enter(await people(10))
  expect(handed()).toEqual(Array.from({ length: 10 }, () => 'AB'))
  expect(early).toEqual(new Set())
})

test('the next push waits while the one before it is tried again, and goes as soon as that is sent', async () => {
  await live([await push('Push A'), await push('Push B'), await push('Push C')])
  firstOf('A', RETRY)
  await enter(await people(10))
  expect(handed()).toEqual(Array.from({ length: 10 }, () => 'A'))
  clock.advance({ minutes: 1 })
  await work()
  expect(handed()).toEqual(Array.from({ length: 10 }, () => 'AABC'))
})

test('also where a tag was set in between', async () => {
  const tag = (key: string) => ({ kind: 'tag', assignments: { [key]: 'yes' } })
  await live([await push('Push A'), tag('one'), tag('two'), await push('Push B')])
  firstOf('A', RETRY)
  await enter(await people(3))
  expect(handed()).toEqual(['A', 'A', 'A'])
  clock.advance({ minutes: 1 })
  await work()
  expect(handed()).toEqual(['AAB', 'AAB', 'AAB'])
})

test('also where a wait is over before the push before it is sent', async () => {
  await live([await push('Push A'), { kind: 'wait', duration_seconds: 60 }, await push('Push B')])
  firstOf('A', { ...RETRY, afterMs: 600_000 })
  await enter(await people(3))
  clock.advance({ minutes: 2 })
  await work()
  expect(handed()).toEqual(['A', 'A', 'A'])
  clock.advance({ minutes: 8 })
  await work()
  expect(handed()).toEqual(['AAB', 'AAB', 'AAB'])
})

describe.each<[string, ChannelOutcome]>([
  ['failed', { kind: 'failed', reason: 'refused' }],
  ['is unknown', { kind: 'unknown', reason: 'no answer' }],
])('a push that %s', (_, outcome) => {
  test('holds nothing up', async () => {
    await live([await push('Push A'), await push('Push B')])
    firstOf('A', outcome)
    await enter(await people(3))
    expect(handed()).toEqual(['AB', 'AB', 'AB'])
  })
})

test('what waits behind a push that is put off is due with it, and its line does not look for it before', async () => {
  await live([await push('Push A'), await push('Push B')])
  firstOf('A', { ...RETRY, afterMs: 3_600_000 })
  await enter(await people(10))
  const at = new Date(clock.now().getTime() + 3_600_000)
  const jobs = await app.db.query<{ runAt: Date }>(sql`
    select run_at from jobs where app_id = ${app.tenant.id} and name = 'messages.deliver'`)
  expect(jobs.length).toBeGreaterThan(0)
  expect(jobs.map(({ runAt }) => runAt)).toEqual(jobs.map(() => at))
})

test('the same after a crash between the two', async () => {
  await live([await push('Push A'), await push('Push B')])
  firstOf('A', { ...RETRY, afterMs: 3_600_000 })
  await enter(await people(3))
  const at = new Date(clock.now().getTime() + 3_600_000)
  // As whoever died before they put off the second ones leaves them.
  await app.db.query(sql`
    update deliveries set due_at = ${clock.now()} where app_id = ${app.tenant.id} and state = 'pending' and attempts = 0`)
  await app.db.query(sql`
    update jobs set run_at = ${clock.now()} where app_id = ${app.tenant.id} and name = 'messages.deliver'`)
  await work()
  expect(handed()).toEqual(['A', 'A', 'A'])
  const waiting = await app.db.query<{ dueAt: Date }>(sql`
    select due_at from deliveries where app_id = ${app.tenant.id} and state = 'pending'`)
  expect(waiting.map(({ dueAt }) => dueAt)).toEqual(Array.from({ length: 6 }, () => at))
})

test('a user who was deleted before a send node has left early', async () => {
  const journey = await live([{ kind: 'wait', duration_seconds: 60 }, await push('Push A')])
  const [user] = (await people(1)) as [MadeUser]
  await enter([user])
  clock.advance({ seconds: 59 })
  expect((await app.app(user.path, { method: 'DELETE' })).status).toBe(202)
  clock.advance({ seconds: 1 })
  await work()
  expect(handed()).toEqual([''])
  const [, send] = journey.nodes
  const { body } = await app.app(`/journeys/${journey.id}/stats`)
  expect(body).toMatchObject({ started: 1, completed: 0, exited_early: 1 })
  expect(body.nodes[send.id]).toMatchObject({ completed: 0 })
})

test('a push that was canceled while it waited lets the next one go', async () => {
  const journey = await live([await push('Push A'), await push('Push B')])
  firstOf('A', RETRY)
  await enter(await people(3))
  const [message] = await app.db.query<{ messageId: string }>(sql`
    select message_id from journey_messages where app_id = ${app.tenant.id} and journey_id = ${journey.id}
      and node_id = ${journey.nodes[0].id}`)
  await cancel({ db: app.db, clock }, app.tenant.id, message?.messageId ?? '')
  await work()
  clock.advance({ minutes: 1 })
  await work()
  expect(handed()).toEqual(['AB', 'AB', 'AB'])
})
