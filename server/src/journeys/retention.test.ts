import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { runJobs } from '../../test/events.ts'
import { aJourney, aWait, update } from '../../test/journeys.ts'
import { aKeeper, countsOf, expectExact, ofAnotherApp, putRun, runsOf } from '../../test/runs.ts'
import { aSegment, tagIs } from '../../test/segments.ts'
import { aUser } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'
import { deleteExpiredRuns } from './retention.ts'
import { deleteExpiredPassesInPage, endOfPasses, type PassCursor } from './runs/lifecycle-store.ts'
import { EXCLUSIVE_SLOT } from './runs/run-store.ts'
import { countPasses } from './sends/message-store.ts'

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

async function anActiveJourney(nodes: object[] = [aWait()]) {
  const audience = { kind: 'segment', included_segment_ids: [await aSegment(app, [tagIs('plan', 'none')])] }
  const journey = await aJourney(app, { audience, nodes })
  await update(app, journey.id, { state: 'active' })
  await aKeeper(app, clock).run()
  return journey
}

test('a deleted user leaves every journey, and no trace; the numbers stay exact', async () => {
  const [one, two] = [await anActiveJourney(), await anActiveJourney()]
  const [user, other] = [await aUser(app), await aUser(app)]
  const nodeId = one.nodes[0].id
  const untilAt = new Date(clock.now().getTime() + 86_400_000)
  await putRun(app, clock, one.id, user.id, { nodeId, untilAt })
  await putRun(app, clock, one.id, user.id, { state: 'completed', isByEvent: true })
  const stays = await putRun(app, clock, one.id, other.id, { nodeId, untilAt })
  await putRun(app, clock, two.id, user.id, { state: 'barred' })
  await app.db.query(sql`
    insert into journey_calls (app_id, id, journey_id, node_id, run_id, user_id, webhook_id, called_at, due_at)
    values (${app.tenant.id}, ${newId()}, ${one.id}, ${nodeId}, ${newId()}, ${user.id}, ${newId()}, ${clock.now()},
      ${untilAt})`)
  expect((await app.app(user.path, { method: 'DELETE' })).status).toBe(202)
  clock.advance({ minutes: 1 })
  await runJobs(app, clock)
  expect((await expectExact(app, one.id)).map(({ id }) => id)).toEqual([stays])
  expect(await expectExact(app, two.id)).toEqual([])
  const counts = await countsOf(app, one.id)
  const at = (place: string, fact: string) => counts.get(`${place} ${fact}`)
  expect([at(one.id, 'started'), at(one.id, 'completed'), at(one.id, 'exited_early')]).toEqual([3, 1, 1])
  expect([at(nodeId, 'exited_early'), at(nodeId, 'waiting')]).toEqual([1, 1])
  expect(await app.db.query(sql`select 1 from journey_calls where app_id = ${app.tenant.id}`)).toEqual([])
})

test('old runs go, unless they keep their user out; those of journeys archived long ago go as well', async () => {
  const [live, archived] = [await anActiveJourney(), await anActiveJourney()]
  const old = clock.now()
  const put = (id: string, draft: Parameters<typeof putRun>[4]) => putRun(app, clock, id, newId(), draft)
  await put(live.id, { state: 'completed', isByEvent: true, endedAt: old })
  const keepsOut = await put(live.id, { state: 'completed', endedAt: old })
  const waits = await put(live.id, { nodeId: live.nodes[0].id })
  const barred = await put(live.id, { state: 'barred' })
  await put(archived.id, { state: 'completed', endedAt: old })
  await put(archived.id, { state: 'barred' })
  await update(app, archived.id, { state: 'archived' })
  const aMessage = (day: string) =>
    app.db.query(sql`
      insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
      values (${app.tenant.id}, ${live.id}, ${live.nodes[0].id}, ${new Date(day)}, ${newId()}, 1, ${newId()})`)
  await aMessage(old.toISOString().slice(0, 10))
  clock.advance({ days: 30 })
  const recent = await put(live.id, { state: 'exited', isByEvent: true })
  const today = clock.now().toISOString().slice(0, 10)
  await aMessage(today)
  await deleteExpiredRuns(app.db, clock.now(), 31)
  expect(await runsOf(app, live.id)).toHaveLength(5)
  await deleteExpiredRuns(app.db, new Date(clock.now().getTime() + 1), 30)
  expect((await runsOf(app, live.id)).map(({ id }) => id).sort()).toEqual([keepsOut, waits, barred, recent].sort())
  expect(await runsOf(app, archived.id)).toEqual([])
  const daysLeft = () =>
    app.db.query(sql`select day from journey_messages where app_id = ${app.tenant.id} order by day`)
  const firstDay = old.toISOString().slice(0, 10)
  expect(await daysLeft()).toEqual([{ day: new Date(firstDay) }, { day: new Date(today) }])
  await deleteExpiredRuns(app.db, new Date(clock.now().getTime() + 86_400_000), 30)
  expect(await daysLeft()).toEqual([{ day: new Date(today) }])
})

const passesOf = async (journeyId: string) => {
  const found = await app.db.query<{ userId: string; day: Date; passes: number }>(sql`
    select user_id, day, passes from journey_passes
    where app_id = ${app.tenant.id} and journey_id = ${journeyId} order by user_id, node_id`)
  return found.map(({ userId, day, passes }) => [userId, day.toISOString().slice(0, 10), passes])
}
const count = (journeyId: string, users: readonly string[], day: string, nodeId = newId()) =>
  countPasses(
    app.db,
    app.tenant.id,
    journeyId,
    users.map((userId) => ({ userId, nodeId, count: 1 })),
    new Date(day),
  )

test('how often users passed a node is forgotten once its day and the next are over', async () => {
  const [journeyId, another] = [newId(), newId()]
  const [gone, back, stays] = [newId(), newId(), newId()].sort() as [string, string, string]
  const nodeId = newId()
  await count(journeyId, [gone, back], '2031-05-01', nodeId)
  await count(another, [gone], '2031-05-01', nodeId)
  await count(journeyId, [stays], '2031-05-02', nodeId)
  await deleteExpiredRuns(app.db, new Date('2031-05-03T00:00:00Z'), 400)
  expect(await passesOf(journeyId)).toHaveLength(3)
  await count(journeyId, [back], '2031-05-03', nodeId)
  await deleteExpiredRuns(app.db, new Date('2031-05-03T00:00:00.001Z'), 400)
  expect(await passesOf(journeyId)).toEqual([
    [back, '2031-05-03', 1],
    [stays, '2031-05-02', 1],
  ])
  expect(await passesOf(another)).toEqual([])
  // Who comes back is counted from the beginning.
  expect(await count(journeyId, [gone], '2031-05-03', nodeId)).toMatchObject([{ passes: 1 }])
})

test('page by page, none is left out; who is just being counted is not waited for', async () => {
  const journeyId = newId()
  const users = Array.from({ length: 10 }, () => newId()).sort()
  await count(journeyId, users, '2031-05-01')
  await app.db.transaction(async (db) => {
    await db.query(sql`
      select 1 from journey_passes
      where app_id = ${app.tenant.id} and journey_id = ${journeyId} and user_id = ${users[4]} for update`)
    let pages = 0
    for (
      let after: PassCursor | undefined = { journeyId: EXCLUSIVE_SLOT, userId: EXCLUSIVE_SLOT, nodeId: EXCLUSIVE_SLOT };
      after;
      pages++
    ) {
      const upTo = await endOfPasses(app.db, app.tenant.id, after, 3)
      await deleteExpiredPassesInPage(app.db, app.tenant.id, { after, upTo }, new Date('2031-05-02'))
      after = upTo
    }
    expect(pages).toBe(4)
  })
  expect(await passesOf(journeyId)).toEqual([[users[4], '2031-05-01', 1]])
})
