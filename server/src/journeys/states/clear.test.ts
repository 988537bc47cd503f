import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aMessage, messageRow, recipients } from '../../../test/engine.ts'
import { untilBlocked } from '../../../test/entry.ts'
import { aJourney, aWait, remove, update, view } from '../../../test/journeys.ts'
import { aKeeper, countsOf, expectExact, ofAnotherApp, putRun, runsOf, tallyRuns } from '../../../test/runs.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createQueue } from '../../queue/enqueue.ts'
import { sql } from '../../storage/sql.ts'
import { clearJob } from '../jobs.ts'
import { createLiveJourneys } from '../runs/live-journeys.ts'

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

const work = () => aKeeper(app, clock).run()
const later = () => new Date(clock.now().getTime() + 3_600_000)

/** Active, with people at its one node, about to enter, done, and left early. */
async function anInhabitedJourney(schedule: object | null = null) {
  const segmentId = await aSegment(app, [tagIs('plan', 'none')])
  const audience = { kind: 'segment', included_segment_ids: [segmentId] }
  const { id, nodes } = await aJourney(app, { audience, nodes: [aWait()], schedule })
  await update(app, id, { state: 'active' })
  await work()
  const nodeId = nodes[0].id as string
  for (let n = 0; n < 3; n++) await putRun(app, clock, id, newId(), { nodeId, untilAt: later() })
  await putRun(app, clock, id, newId())
  await putRun(app, clock, id, newId(), { state: 'completed' })
  await putRun(app, clock, id, newId(), { state: 'exited' })
  await putRun(app, clock, id, newId(), { state: 'barred' })
  await app.db.query(sql`
    insert into journey_calls (app_id, id, journey_id, node_id, run_id, user_id, webhook_id, called_at, due_at)
    values (${app.tenant.id}, ${newId()}, ${id}, ${nodeId}, ${newId()}, ${newId()}, ${newId()}, ${clock.now()}, ${clock.now()})`)
  return { id, nodeId }
}

const callsOf = (id: string) =>
  app.db.query(sql`select id from journey_calls where app_id = ${app.tenant.id} and journey_id = ${id}`)

test.each<['archived' | 'deleted', (id: string) => Promise<{ status: number }>]>([
  ['archived', (id) => update(app, id, { state: 'archived' })],
  ['deleted', (id) => remove(app, id)],
])('a journey can be %s while its runs are always being moved', async (_, end) => {
  const { id } = await anInhabitedJourney()
  const live = createLiveJourneys()
  const hold = () => app.db.transaction((db) => live.lockForShare(db, app.tenant.id, id))
  const { ending, next } = await app.db.transaction(async (db) => {
    expect(await live.lockForShare(db, app.tenant.id, id)).toBeDefined()
    const ending = end(id)
    await untilBlocked(app)
    // Whoever would move the next ones comes after who waits to end it.
    const next = hold()
    await Promise.race([next, untilBlocked(app, 2)])
    return { ending, next }
  })
  expect((await ending).status).toBe(200)
  expect(await next).toBeUndefined()
})

describe('a journey that is archived', () => {
  const STOPPED = { stopped: 4, completed: 1, exited: 1, barred: 1 }

  test('stops those who are in it where they are; what was counted stays, and nobody waits any more', async () => {
    const { id, nodeId } = await anInhabitedJourney()
    await expectExact(app, id)
    clock.advance({ seconds: 5 })
    expect((await update(app, id, { state: 'archived' })).status).toBe(200)
    await work()
    const runs = await expectExact(app, id)
    expect(tallyRuns(runs)).toEqual(STOPPED)
    const stopped = runs.filter(({ state }) => state === 'stopped')
    expect(stopped.map(({ nodeId }) => nodeId).sort()).toEqual([null, nodeId, nodeId, nodeId].sort())
    for (const run of stopped) expect(run).toMatchObject({ dueAt: null, untilAt: null, endedAt: clock.now() })
    expect((await app.app(`/journeys/${id}/stats`)).body).toMatchObject({
      started: 6,
      completed: 1,
      exited_early: 1,
      nodes: { [nodeId]: { waiting: 0 } },
    })
    expect(await callsOf(id)).toEqual([])
  })

  test('at its time does the same', async () => {
    const { id } = await anInhabitedJourney({ stop_at: later().toISOString() })
    clock.advance({ hours: 1 })
    await work()
    expect((await view(app, id)).body.state).toBe('archived')
    expect(tallyRuns(await expectExact(app, id))).toEqual(STOPPED)
  })

  test('with more in it than go at once stops all of them', async () => {
    const { id, nodeId } = await anInhabitedJourney()
    const many = await recipients({ db: app.db, clock }, app.tenant.id, 10_500)
    await app.db.query(sql`
      insert into journey_runs (app_id, id, journey_id, user_id, part, slot, node_id, arrived_at, entered_at)
      select ${app.tenant.id}::uuid, u, ${id}::uuid, u, 0, ${newId()}::uuid, ${nodeId}::uuid, ${clock.now()}, ${clock.now()}
      from unnest(${many.map(({ userId }) => userId)}::uuid[]) u`)
    await app.db.query(sql`
      insert into journey_counts (app_id, journey_id, place_id, fact, part, count)
      values (${app.tenant.id}, ${id}, ${id}, 'started', 1, 10500), (${app.tenant.id}, ${id}, ${nodeId}, 'waiting', 1, 10500)`)
    await update(app, id, { state: 'archived' })
    await work()
    expect(tallyRuns(await expectExact(app, id))).toEqual({ ...STOPPED, stopped: 10_504 })
  })
})

/** The message of a send node, which is open for recipients. */
async function anOpenMessage(journeyId: string, nodeId: string): Promise<string> {
  const messageId = await aMessage({ db: app.db, clock }, app.tenant.id, { sendAfter: later() })
  await app.db.query(sql`update messages set is_listed = false where app_id = ${app.tenant.id} and id = ${messageId}`)
  await app.db.query(sql`
    insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
    values (${app.tenant.id}, ${journeyId}, ${nodeId}, '2030-01-01', ${newId()}, 1, ${messageId})`)
  return messageId
}

test.each([
  ['archived', (id: string) => update(app, id, { state: 'archived' }), 1],
  ['deleted', (id: string) => remove(app, id), 0],
] as const)('what a journey that is %s was about to send is canceled', async (_, end, kept) => {
  const { id, nodeId } = await anInhabitedJourney()
  const messageId = await anOpenMessage(id, nodeId)
  expect((await end(id)).status).toBe(200)
  await work()
  expect(await messageRow(app.db, app.tenant.id, messageId)).toMatchObject({ state: 'canceled' })
  expect(await app.db.query(sql`select 1 from journey_messages where app_id = ${app.tenant.id}`)).toHaveLength(kept)
})

test('a journey that is deleted leaves nothing', async () => {
  const { id, nodeId } = await anInhabitedJourney()
  await app.db.query(sql`
    insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
    values (${app.tenant.id}, ${id}, ${nodeId}, '2030-01-01', ${newId()}, 1, ${newId()})`)
  expect((await remove(app, id)).status).toBe(200)
  await work()
  expect(await runsOf(app, id)).toEqual([])
  expect(await countsOf(app, id)).toEqual(new Map())
  expect(await callsOf(id)).toEqual([])
  expect(await app.db.query(sql`select 1 from journey_messages where app_id = ${app.tenant.id}`)).toEqual([])
})

test('what is asked for too late, or twice, does nothing to a journey that is active', async () => {
  const { id } = await anInhabitedJourney()
  const before = await runsOf(app, id)
  await createQueue({ clock, newId }).enqueue(app.db, [clearJob(app.tenant.id, id)])
  await work()
  expect(await runsOf(app, id)).toEqual(before)
})
