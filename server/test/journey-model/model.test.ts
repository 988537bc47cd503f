// The engine against a model of it: journeys that nobody would think of, people who do anything at any time. What each has come by,
// where they are and what was done for them must be what the model says, step by step.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileJourney } from '../../src/journeys/runs/compiled.ts'
import { findJourney } from '../../src/journeys/store.ts'
import { virtualClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { sql } from '../../src/storage/sql.ts'
import { type TestApp, testApp } from '../app.ts'
import { closeRenderer, type FakeSender, fakeSender } from '../engine.ts'
import { aReadyJourney, someReferences, update } from '../journeys.ts'
import { aSegment, tagIs } from '../segments.ts'
import { aName, aUser, type MadeUser, view } from '../users.ts'
import { aWorker } from '../worker.ts'
import { type Action, actions, earlyExit, nodes, type Things } from './graphs.ts'
import { createModel } from './model.ts'

const ROUNDS = process.env.CHAOS_FULL ? 300 : 20
const USERS = 8

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

/** One entry for each user: of two runs of a user nobody says which sees the other's tags first. */
const once = (list: readonly Action[]) => {
  const entered = new Set<number>()
  return list.filter((it) => it.kind !== 'enter' || (!entered.has(it.user) && entered.add(it.user)))
}

type SeenRun = {
  id: string
  userId: string
  state: string
  nodeId: string | null
  untilAt: Date | null
  path: string[]
}

async function play(drafts: object[], exit: object | null, list: readonly Action[]) {
  const { sender, calls, work } = aRound()
  const entryName = aName('came in')
  const journey = await aReadyJourney(app, {
    audience: { kind: 'event_trigger', name: entryName },
    nodes: drafts.length > 0 ? drafts : [{ kind: 'wait', duration_seconds: 60 }],
    early_exit: exit,
  })
  expect(await update(app, journey.id, { state: 'active' })).toMatchObject({ status: 200 })
  await work()
  const stored = await findJourney(app.db, app.tenant.id, journey.id)
  if (!stored) throw new Error('no journey')
  const [first, second] = things.segmentIds
  const model = createModel(compileJourney(stored), (id, { tags }) =>
    id === first ? tags.s0 === '1' : id === second && tags.s1 === '1',
  )
  const people: MadeUser[] = []
  for (let n = 0; n < USERS; n++) {
    const user = await aUser(app, {
      subscriptions: [{ type: 'AndroidPush', token: aName('token') }],
    })
    people.push(user)
    model.add(user.id)
  }
  const findRuns = () =>
    app.db.query<SeenRun>(sql`
      select id, user_id, state, node_id, until_at, path from journey_runs
      where app_id = ${app.tenant.id} and journey_id = ${journey.id}`)
  const record = async (name: string, user: MadeUser, n: number) => {
    const event = { id: newId(), name, at: clock.now().toISOString(), properties: { n } }
    const answer = await app.app('/custom_events', {
      body: { events: [{ name, onesignal_id: user.id, timestamp: event.at, properties: { n } }] },
    })
    expect(answer.status).toBe(202)
    return event
  }

  for (const action of [...once(list), { kind: 'later', seconds: 90_000 } as const]) {
    clock.advance({ seconds: 1 })
    const now = clock.now()
    const user = 'user' in action ? (people[action.user] as MadeUser) : undefined
    if (action.kind === 'later') clock.advance({ seconds: action.seconds })
    if (action.kind === 'tag' && user) {
      await app.app(user.path, { method: 'PATCH', body: { properties: { tags: { [action.key]: action.value } } } })
      model.setTag(user.id, action.key, action.value, now)
    }
    if (action.kind === 'event' && user) model.record(user.id, await record(action.name, user, action.n), now)
    const event = action.kind === 'enter' && user ? await record(entryName, user, action.n) : undefined
    await work()
    if (event && user) {
      const run = (await findRuns()).find(({ userId }) => userId === user.id)
      model.enter(run?.id ?? 'nobody', user.id, event, clock.now())
    }
    model.settle(clock.now())
    const seen = new Map((await findRuns()).map((it) => [it.id, it]))
    expect([...seen.keys()].sort()).toEqual([...model.runs.keys()].sort())
    for (const [id, run] of model.runs) {
      const { state, nodeId, untilAt, path } = seen.get(id) as SeenRun
      expect({ state, nodeId, untilAt, path }).toEqual({
        state: run.state,
        nodeId: run.nodeId ?? null,
        untilAt: run.untilAt ?? null,
        path: run.path,
      })
    }
  }

  for (const user of people) {
    const told = model.told.get(user.id) ?? { sends: 0, calls: 0 }
    const tokens = (await view(app, user)).subscriptions.map(({ token }: { token: string }) => token)
    expect(sender.calls.filter(({ parcel }) => tokens.includes(parcel.token))).toHaveLength(told.sends)
    expect(calls.filter((id) => id === user.id)).toHaveLength(told.calls)
    expect((await view(app, user)).properties.tags).toEqual(model.users.get(user.id)?.tags)
  }
  const { body: stats } = await app.app(`/journeys/${journey.id}/stats`)
  const ended = (state: string) => [...model.runs.values()].filter((it) => it.state === state).length
  expect(stats).toMatchObject({
    started: model.runs.size,
    completed: ended('completed'),
    exited_early: ended('exited'),
  })
  for (const [id, node] of Object.entries<{ waiting: number }>(stats.nodes)) {
    const resting = [...model.runs.values()].filter((it) => it.nodeId === id && it.arrivedAt && it.state === 'waiting')
    expect(node.waiting).toBe(resting.length)
  }
  await app.app(`/journeys/${journey.id}`, { method: 'DELETE' })
  await work()
}

test('generated journeys: everybody goes the way the rules say, and everything is done once', async () => {
  await fc.assert(fc.asyncProperty(nodes(things, 2), earlyExit(things), actions(USERS), play), {
    numRuns: ROUNDS,
    endOnFailure: true,
    ...(process.env.SEED && { seed: Number(process.env.SEED) }),
  })
}, 600_000)
