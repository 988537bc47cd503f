import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { runJobs } from '../../../test/events.ts'
import { aJourney, aWait, update, updateNode, view } from '../../../test/journeys.ts'
import { aKeeper, expectExact, ofAnotherApp, putRun } from '../../../test/runs.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aUser } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { JourneyNode } from '../nodes/kinds.ts'
import { findRemoved } from './relocate-runs.ts'

let server: TestApp
let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(() => server.close())
beforeEach(async () => {
  app = await ofAnotherApp(server)
})

const later = () => new Date(clock.now().getTime() + 3_600_000)

async function anActiveJourney(nodes: object[]) {
  const audience = { kind: 'segment', included_segment_ids: [await aSegment(app, [tagIs('plan', 'none')])] }
  const { id } = await aJourney(app, { audience, nodes })
  await update(app, id, { state: 'active' })
  await aKeeper(app, clock).run()
  return (await view(app, id)).body
}

test('those at a node that is taken out go on to the next that stays; the others stay where they are', async () => {
  const { id, nodes } = await anActiveJourney([aWait(), aWait(), aWait(), aWait()])
  const [a, b, c, d] = nodes.map(({ id }: { id: string }) => id)
  const ids = {
    atA: await putRun(app, clock, id, newId(), { nodeId: a, untilAt: later() }),
    atB: await putRun(app, clock, id, newId(), { nodeId: b, untilAt: later() }),
    toC: await putRun(app, clock, id, newId(), { nodeId: c, hasArrived: false }),
    atD: await putRun(app, clock, id, newId(), { nodeId: d, untilAt: later() }),
    done: await putRun(app, clock, id, newId(), { state: 'completed' }),
    fresh: await putRun(app, clock, id, newId()),
  }
  const before = new Map((await expectExact(app, id)).map((run) => [run.id, run]))
  clock.advance({ seconds: 5 })
  expect((await update(app, id, { nodes: [nodes[0], nodes[3]] })).status).toBe(200)
  const after = new Map((await expectExact(app, id)).map((run) => [run.id, run]))
  for (const name of ['atA', 'atD', 'done', 'fresh'] as const)
    expect(after.get(ids[name])).toEqual(before.get(ids[name]))
  for (const name of ['atB', 'toC'] as const)
    expect(after.get(ids[name])).toMatchObject({ nodeId: d, arrivedAt: null, untilAt: null, dueAt: clock.now() })
  const keeper = aKeeper(app, clock)
  await keeper.run()
  expect(keeper.moved).toHaveLength(4)
})

test('where nothing follows they are done, and count as completed', async () => {
  const { id, nodes } = await anActiveJourney([aWait(), aWait()])
  const { id: userId } = await aUser(app)
  const run = await putRun(app, clock, id, userId, { nodeId: nodes[1].id, untilAt: later() })
  const stays = await putRun(app, clock, id, newId(), { nodeId: nodes[0].id, untilAt: later() })
  await update(app, id, { nodes: [nodes[0]] })
  await expectExact(app, id)
  await runJobs(app, clock)
  const runs = new Map((await expectExact(app, id)).map((run) => [run.id, run]))
  expect(runs.get(run)).toMatchObject({ state: 'completed', endedAt: clock.now() })
  expect(runs.get(stays)).toMatchObject({ state: 'waiting', nodeId: nodes[0].id })
  expect((await app.app(`/journeys/${id}/stats`)).body).toMatchObject({ started: 2, completed: 1, exited_early: 0 })
})

test('an update of one node that drops a branch moves those in it', async () => {
  const condition = { kind: 'event_trigger', name: 'bought' }
  const wait = {
    kind: 'wait_until',
    branches: [
      { condition, nodes: [aWait()] },
      { condition: { ...condition, name: 'left' }, nodes: [aWait()] },
    ],
  }
  const { id, nodes } = await anActiveJourney([wait, aWait()])
  const [until, last] = nodes
  const inside = until.branches[1].nodes[0].id
  const moved = await putRun(app, clock, id, newId(), { nodeId: inside, untilAt: later() })
  const stays = await putRun(app, clock, id, newId(), { nodeId: until.branches[0].nodes[0].id, untilAt: later() })
  expect((await updateNode(app, id, until.id, { branches: [until.branches[0]] })).status).toBe(200)
  const runs = new Map((await expectExact(app, id)).map((run) => [run.id, run.nodeId]))
  expect(runs.get(moved)).toBe(last.id)
  expect(runs.get(stays)).toBe(until.branches[0].nodes[0].id)
})

test('the next one is found in the order that there was, through the ends of branches', () => {
  const wait = (id: string): JourneyNode => ({ id, kind: 'wait', duration_seconds: 60 })
  const split = (id: string, ...branches: JourneyNode[][]): JourneyNode => ({
    id,
    kind: 'split_range',
    randomize_on_entry: false,
    branches: branches.map((nodes, n) => ({ id: `${id} ${n}`, weight: 100 / branches.length, nodes })),
  })
  const before = [wait('a'), split('s', [wait('b'), split('t', [wait('c')], [])], [wait('d')]), wait('e'), wait('f')]
  const next = (...stay: string[]) =>
    Object.fromEntries(findRemoved(before, stay.map(wait)).map(({ nodeId, next }) => [nodeId, next]))
  expect(next('a', 'f')).toEqual({ s: 'f', b: 'f', t: 'f', c: 'f', d: 'f', e: 'f' })
  expect(next('a', 't', 'e')).toEqual({ s: 'e', b: 't', c: 'e', d: 'e', f: null })
  expect(next()).toEqual({ a: null, s: null, b: null, t: null, c: null, d: null, e: null, f: null })
  expect(findRemoved(before, before)).toEqual([])
})
