// The engine against a reading of the documents that shares nothing with it: journeys that nobody would think of, people who do
// anything at any time. Who is in, where they are and what was done for them must be what the model says, step by step.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { sql } from '../../src/storage/sql.ts'
import { type TestApp, testApp } from '../app.ts'
import { closeRenderer, type FakeSender, fakeSender } from '../engine.ts'
import { aReadyJourney, someReferences, update, view as viewJourney } from '../journeys.ts'
import { aSegment, tagIs } from '../segments.ts'
import { aName, aUser, type MadeUser, view } from '../users.ts'
import { aWorker } from '../worker.ts'
import { type Moment, moments, type Plan, plans, type Things } from './graphs.ts'
import { createModel, type ModelRun } from './model.ts'
import { type Person, ZONES } from './one-user.ts'

const ROUNDS = process.env.CHAOS_FULL ? 300 : 25
const USERS = 24

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let things: Things

beforeAll(async () => {
  app = await testApp({ clock })
  const { pushId, iamId, webhookId } = await someReferences(app)
  const segmentIds = [await aSegment(app, [tagIs('s0', '1')]), await aSegment(app, [tagIs('s1', '1')])] as const
  things = { segmentIds, pushId, iamId, webhookId }
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})

type Round = { sender: FakeSender; calls: string[]; work: () => Promise<unknown> }

function aRound(): Round {
  const sender = fakeSender()
  const calls: string[] = []
  const sendWebhook = async ({ body }: { body: string }) => {
    calls.push(JSON.parse(body).data.user.onesignal_id)
    return { kind: 'sent' as const }
  }
  // Two at once, as if two servers were there.
  const workers = [1, 2].map(() => aWorker(app, clock, { sender, sendWebhook }))
  return { sender, calls, work: () => Promise.all(workers.map((worker) => worker.runDue())) }
}

type SeenRun = {
  id: string
  userId: string
  state: string
  nodeId: string | null
  untilAt: Date | null
  path: string[]
  metEvents: { name: string; at: string; properties: { n: number } }[]
}

/** Some are in the segments from the beginning, and they live all over the world. */
async function somebody(n: number): Promise<{ user: MadeUser; person: Person }> {
  const tags: Record<string, string> = { ...(n % 3 === 0 && { s0: '1' }), ...(n % 4 === 1 && { s1: '1' }) }
  const zone = [undefined, ...Object.keys(ZONES)][n % 5]
  const user = await aUser(app, {
    properties: { tags, ...(zone && { timezone_id: zone }) },
    subscriptions: [{ type: 'AndroidPush', token: aName('token') }],
  })
  const place = { zone: zone === undefined ? undefined : ZONES[zone], lastActive: clock.now() }
  return { user, person: { id: user.id, tags: { ...tags }, events: [], sessions: [], ...place } }
}

/** One entry for each user. */
const once = (list: readonly Moment[], name: unknown): Moment[] => {
  const entered = new Set<number>()
  return list.map(({ action, isSeen }) => {
    if (action.kind !== 'event' || action.name !== name) return { action, isSeen }
    const users = action.users.filter((user) => !entered.has(user) && entered.add(user))
    return { action: { ...action, users }, isSeen }
  })
}

async function play({ isOnce, fields }: Plan, list: readonly Moment[]) {
  const { sender, calls, work } = aRound()
  const everybody = await Promise.all(Array.from({ length: USERS }, (_, n) => somebody(n)))
  const people = everybody.map(({ user }) => user)
  const { id: journeyId } = await aReadyJourney(app, fields)
  const { body: journey } = await viewJourney(app, journeyId)
  let seen: SeenRun[] = []
  const [first, second] = things.segmentIds
  const model = createModel(journey, {
    isIn: (id, { tags }) => (id === first ? tags.s0 === '1' : id === second && tags.s1 === '1'),
    idOf: (userId, nth) => seen.filter((it) => it.userId === userId)[nth]?.id ?? 'nobody',
  })
  for (const { person } of everybody) model.add(person)

  async function look() {
    // After what happened: at the very moment at which somebody enters, nobody says which comes first.
    clock.advance({ ms: 1 })
    await work()
    seen = await app.db.query<SeenRun>(sql`
      select id, user_id, state, node_id, until_at, path, met_events from journey_runs
      where app_id = ${app.tenant.id} and journey_id = ${journeyId} and state <> 'barred' order by entered_at, entry_event ->> 'at'`)
    model.settle(clock.now())
    const told = ({ userId, state, nodeId, untilAt, path, metEvents }: SeenRun) => ({
      ...{ userId, state, nodeId, untilAt, path },
      met: metEvents.map(({ name, at, properties: { n } }) => ({ name, at: new Date(at), n })),
    })
    const expected = ({ person, state, nodeId, untilAt, path, met }: ModelRun) => ({
      ...{ userId: person.id, state, nodeId, path, met },
      untilAt: state === 'waiting' ? untilAt : null,
    })
    const of = (userId: string) => seen.filter((it) => it.userId === userId).map(told)
    for (const { id } of people)
      expect(of(id)).toEqual(model.runs.filter(({ person }) => person.id === id).map(expected))
  }

  expect(await update(app, journeyId, { state: 'active' })).toMatchObject({ status: 200 })
  model.activate()
  await look()
  const doAction = async (action: Moment['action']) => {
    if (action.kind === 'later') return clock.advance({ seconds: action.seconds })
    const now = clock.now()
    const who = action.users.map((n) => people[n] as MadeUser)
    const patch = (body: object) => Promise.all(who.map(({ path }) => app.app(path, { method: 'PATCH', body })))
    if (action.kind === 'tag') {
      await patch({ properties: { tags: { [action.key]: action.value } } })
      for (const { id } of who) model.setTag(id, action.key, action.value)
    } else if (action.kind === 'session') {
      await patch({ deltas: { session_count: 1 } })
      for (const { id } of who) model.beginSession(id, now)
    } else if (who.length > 0) {
      const { name } = action
      const numbers = who.map((_, n) => (action.n + n) % 3)
      const timestamp = now.toISOString()
      const events = who.map(({ id }, n) => ({ name, onesignal_id: id, timestamp, properties: { n: numbers[n] } }))
      expect(await app.app('/custom_events', { body: { events } })).toMatchObject({ status: 202 })
      for (const [n, { id }] of who.entries()) model.record(id, { name, n: numbers[n] as number, at: now })
    }
  }
  const last: Moment = { action: { kind: 'later', seconds: 90_000 }, isSeen: true }
  // Of a rule that is met by what happens, and a run that is due when it does, nobody says which comes first.
  const rules = journey.early_exit?.rules ?? {}
  const isHeardOf = rules.on_event || rules.on_session
  for (const { action, isSeen } of [...(isOnce ? once(list, journey.audience.name) : list), last]) {
    clock.advance({ seconds: 1 })
    if (isHeardOf && action.kind !== 'later') await look()
    await doAction(action)
    if (isSeen || isHeardOf) await look()
  }

  for (const user of people) {
    const told = model.told.get(user.id) as { sends: number; calls: number; grantedUntil: unknown }
    const { subscriptions, properties } = await view(app, user)
    const tokens = subscriptions.map(({ token }: { token: string }) => token)
    expect(sender.calls.filter(({ outgoing }) => tokens.includes(outgoing.token))).toHaveLength(told.sends)
    expect(calls.filter((id) => id === user.id)).toHaveLength(told.calls)
    expect(properties.tags).toEqual(model.people.get(user.id)?.tags)
  }
  const granted = await app.db.query<{ userId: string; until: string }>(sql`
    select user_id, case when expires_at = 'infinity' then 'ever' else (extract(epoch from expires_at) * 1000)::bigint::text end as until
    from in_app_grants where app_id = ${app.tenant.id} and user_id = any(${people.map(({ id }) => id)}::uuid[])
      and expires_at > ${clock.now()}`)
  const expectedGrants = [...model.told].flatMap(([userId, { grantedUntil: until }]) => {
    if (until === 'ever') return [{ userId, until }]
    return until && until > clock.now() ? [{ userId, until: String(until.getTime()) }] : []
  })
  const byUser = (a: { userId: string }, b: { userId: string }) => (a.userId < b.userId ? -1 : 1)
  expect(granted.sort(byUser)).toEqual(expectedGrants.sort(byUser))

  const { body: stats } = await app.app(`/journeys/${journeyId}/stats`)
  const inState = (state: string) => model.runs.filter((it) => it.state === state)
  expect(stats).toMatchObject({
    started: model.runs.length,
    completed: inState('completed').length,
    exited_early: inState('exited').length,
  })
  const done = (id: string) => model.runs.flatMap((it) => it.done).filter((it) => it === id).length
  for (const [id, node] of Object.entries<object>(stats.nodes))
    expect(node).toMatchObject({
      waiting: inState('waiting').filter((it) => it.nodeId === id).length,
      completed: done(id),
      exited_early: inState('exited').filter((it) => it.nodeId === id).length,
    })
  for (const [id, branch] of Object.entries(stats.branches)) expect(branch).toEqual({ completed: done(id) })
  // Whoever comes next is alone in the segments.
  await Promise.all(people.map(({ path }) => app.app(path, { method: 'DELETE' })))
  await app.app(`/journeys/${journeyId}`, { method: 'DELETE' })
  await work()
}

test('generated journeys: everybody goes the way the documents say, and everything is done once', async () => {
  await fc.assert(fc.asyncProperty(plans(things), moments(USERS), play), {
    numRuns: ROUNDS,
    endOnFailure: true,
    ...(process.env.SEED && { seed: Number(process.env.SEED) }),
  })
}, 1_200_000)
