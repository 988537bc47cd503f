// A dry run against the engine, on the same people and journeys: what it foretells of everybody, every node and every branch is
// what comes. Nobody does anything of their own, so that nothing has to be drawn.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer } from '../../../test/engine.ts'
import { record } from '../../../test/events.ts'
import { aJourney, someReferences, update } from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aName, anEmail, aUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

const HOUR_MS = 3_600_000
const DAYS = 4
/** Sweeps look for what only time changes: at least this often. */
const STEP_MS = 12 * HOUR_MS
const TOGETHER_MS = HOUR_MS / 2

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let work: () => Promise<unknown>
beforeAll(async () => {
  app = await testApp({ clock })
  const worker = aWorker(app, clock)
  work = () => worker.runDue()
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})

type Fields = Record<string, unknown>
type Numbers = Record<string, Record<string, number>>
type Told = { started: number; completed: number; exited_early: number; nodes: Numbers; branches: Numbers }

const wait = (seconds: number) => ({ kind: 'wait', duration_seconds: seconds })

async function people(count: number, propertiesOf: (n: number) => Fields = () => ({})) {
  const plan = aName('plan')
  const users = []
  for (let n = 0; n < count; n++) {
    const { tags = {}, ...rest } = propertiesOf(n)
    users.push(
      await aUser(app, {
        properties: { tags: { plan, ...(tags as object) }, ...rest },
        subscriptions: [{ type: 'Email', token: anEmail() }],
      }),
    )
  }
  return { users, audience: { kind: 'segment', included_segment_ids: [await aSegment(app, [tagIs('plan', plan)])] } }
}

async function active(fields: Fields): Promise<string> {
  const { id } = await aJourney(app, fields)
  expect((await update(app, id, { state: 'active' })).status).toBe(200)
  return id
}

const numbersOf = (it: Told, waiting: string, taken: string) => ({
  all: { started: it.started, completed: it.completed, exited: it.exited_early },
  nodes: Object.fromEntries(
    Object.entries(it.nodes).map(([id, node]) => [
      id,
      { completed: node.completed, exited: node.exited_early, waiting: node[waiting] },
    ]),
  ),
  branches: Object.fromEntries(Object.entries(it.branches).map(([id, branch]) => [id, branch[taken]])),
})

async function foretold(id: string, days: number) {
  const { status, body } = await app.app(`/journeys/${id}/simulate`, { body: { days, sample: 'all' } })
  expect(status).toBe(200)
  return numbersOf(body, 'waiting_at_end', 'taken')
}

const come = async (id: string) => numbersOf((await app.app(`/journeys/${id}/stats`)).body, 'waiting', 'completed')

/** Whatever is due in the next half hour in which something is, or a sweep, until so many days are over. */
async function passDays(days: number): Promise<void> {
  const endMs = clock.now().getTime() + days * 24 * HOUR_MS
  for (;;) {
    await work()
    const now = clock.now()
    const [next] = await app.db.query<{ at: Date | null }>(sql`
      select min(due_at) as at from journey_runs where app_id = ${app.tenant.id} and due_at > ${now}`)
    const dueMs = Math.ceil((next?.at?.getTime() ?? endMs) / TOGETHER_MS) * TOGETHER_MS
    const atMs = Math.min(dueMs, now.getTime() + STEP_MS)
    if (atMs >= endMs) return
    clock.advance({ ms: atMs - now.getTime() })
  }
}

/** Each kind of node that needs no drawing, early exit and re-entry. */
async function ofManyKinds(): Promise<Fields> {
  const [gold, gone] = [aName('gold'), aName('gone')]
  const { emailId } = await someReferences(app)
  const { audience } = await people(8, (n) => ({
    tags: n % 3 === 0 ? { level: gold } : {},
    ...(n % 2 === 0 && { timezone_id: 'Asia/Tokyo' }),
  }))
  const isGold = { kind: 'segment_membership', included_segment_ids: [await aSegment(app, [tagIs('level', gold)])] }
  const window = { start: { hour: 8 }, end: { hour: 9 } }
  return {
    audience,
    reentry_rules: { duration_seconds: 86_400 },
    early_exit: { rules: { on_segment: { included_segment_ids: [await aSegment(app, [tagIs('gone', gone)])] } } },
    nodes: [
      wait(3_600),
      {
        kind: 'split_range',
        branches: [
          { weight: 40, nodes: [{ kind: 'tag', assignments: { level: gold } }, wait(120)] },
          { weight: 60, nodes: [] },
        ],
      },
      {
        kind: 'yes_no',
        branches: [
          { condition: isGold, nodes: [{ kind: 'send_email', template_id: emailId }, wait(86_400)] },
          { nodes: [{ kind: 'tag', assignments: { gone } }] },
        ],
      },
      { kind: 'time_window', relative_to: 'schedule_in_timezone', windows: [window], use_user_time_zone: true },
      {
        kind: 'wait_until',
        branches: [{ condition: { kind: 'event_trigger', name: aName('never') }, nodes: [] }],
        expiration: { duration_seconds: 7_200, exits: true },
      },
    ],
  }
}

test('what a dry run foretells is what comes', async () => {
  const { audience } = await people(3)
  const away = await aSegment(app, [{ field: 'last_session', relation: '>', hours_ago: '36' }])
  const here = await aSegment(app, [{ field: 'last_session', relation: '<', hours_ago: '36' }])
  const until = (ids: string[], nodes: object[] = []) => ({
    kind: 'wait_until',
    branches: [{ condition: { kind: 'segment_membership', included_segment_ids: ids }, nodes }],
  })
  const journeys = {
    'many kinds of nodes': await ofManyKinds(),
    'a segment that only time leads into': { audience, nodes: [wait(60), until([away], [wait(60)])] },
    'at the first node': { audience, nodes: [until([away])] },
    'early exit by such a segment': {
      audience,
      early_exit: { rules: { on_segment: { included_segment_ids: [away] } } },
      nodes: [wait(60), wait(20 * 86_400)],
    },
    'early exit once time has led out of the audience': {
      audience: { kind: 'segment', included_segment_ids: [here] },
      early_exit: { rules: { when_not_in_audience: true } },
      nodes: [wait(60), { ...until([away]), expiration: { duration_seconds: 20 * 86_400 } }],
    },
    'the first node is done before': {
      audience,
      early_exit: { rules: { on_segment: { included_segment_ids: [away] } } },
      nodes: [wait(3 * 86_400 + 60), wait(20 * 86_400)],
    },
  }
  const ids = new Map<string, string>()
  for (const [name, fields] of Object.entries(journeys)) ids.set(name, await active(fields))
  const dry = new Map<string, unknown>()
  for (const [name, id] of ids) dry.set(name, await foretold(id, DAYS))
  await passDays(DAYS)
  for (const [name, id] of ids) expect({ [name]: dry.get(name) }).toEqual({ [name]: await come(id) })
  // That something came of each.
  for (const id of ids.values()) {
    const { started, completed, exited } = (await come(id)).all
    expect([started > 0, completed + exited > 0]).toEqual([true, true])
  }
})

test('who leaves by the event that lets in does the first node', async () => {
  const name = aName('came')
  const { users } = await people(3)
  const id = await active({
    audience: { kind: 'event_trigger', name },
    early_exit: { rules: { on_event: { name } } },
    nodes: [wait(60), wait(60)],
  })
  await work()
  await record(
    app,
    users.map(({ externalId }) => ({ name, external_id: externalId })),
  )
  for (let minutes = 0; minutes < 3; minutes++) {
    await work()
    clock.advance({ minutes: 1 })
  }
  const real = await come(id)
  expect(real.all).toEqual({ started: 3, completed: 0, exited: 3 })
  expect(await foretold(id, 1)).toEqual(real)
})
