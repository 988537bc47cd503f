import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer, recipients } from '../../../test/engine.ts'
import {
  aJourneyWorker,
  anActiveJourney,
  anAppOf,
  aReachableUser,
  aTagSegment,
  countsOf,
  runsOf,
  tag,
} from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { aWait, update } from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aName } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import { SWEEP_JOURNEY } from '../jobs.ts'

let server: TestApp
let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})
beforeEach(async () => {
  app = await anAppOf(server)
})

const work = () => aJourneyWorker(app, clock).work()
const active = (fields: Record<string, unknown>) => anActiveJourney(app, work, fields)
const bySegments = (included: string[], excluded: string[] = []) => ({
  kind: 'segment',
  included_segment_ids: included,
  excluded_segment_ids: excluded,
})
const awayFor = (hours: number) => aSegment(app, [{ field: 'last_session', relation: '>', hours_ago: String(hours) }])
const usersIn = async (journeyId: string) => (await runsOf(app, journeyId)).map(({ userId }) => userId)
const pass = async (time: Parameters<typeof clock.advance>[0]) => {
  clock.advance(time)
  await work()
}
/** In how many seconds the next sweep of a journey is due. */
const nextSweep = async (journeyId: string) => {
  const found = await app.db.query<{ runAt: Date }>(sql`
    select run_at from jobs where app_id = ${app.tenant.id} and name = ${SWEEP_JOURNEY} and key = ${journeyId}`)
  return found.map(({ runAt }) => (runAt.getTime() - clock.now().getTime()) / 1000)
}

describe('by time alone', () => {
  test('somebody enters, though nothing happens to them', async () => {
    const [away, barred] = [await awayFor(24), await aTagSegment(app)]
    const { id } = await active({ audience: bySegments([away], [barred.id]) })
    const user = await aReachableUser(app)
    await aReachableUser(app, barred.tags)
    await pass({ hours: 24 })
    expect(await usersIn(id)).toEqual([])
    await pass({ seconds: 60 })
    expect(await usersIn(id)).toEqual([user.id])
    expect(await countsOf(app, id)).toEqual({ started: 1 })
    const [run] = await runsOf(app, id)
    expect(run?.nodeId).not.toBeNull()
    await pass({ hours: 1 })
    expect(await countsOf(app, id)).toMatchObject({ started: 1 })
  })

  test('a run that waits for a segment goes on, and another that stands elsewhere does not', async () => {
    const away = await awayFor(2)
    const condition = { kind: 'segment_membership', included_segment_ids: [away], excluded_segment_ids: [] }
    const { id, nodes } = await active({
      audience: { kind: 'event_trigger', name: 'came' },
      nodes: [{ kind: 'wait_until', branches: [{ condition, nodes: [aWait({ duration_seconds: 86_400 })] }] }],
    })
    const user = await aReachableUser(app)
    await record(app, [{ name: 'came', external_id: user.externalId }])
    await pass({ hours: 1 })
    expect(await runsOf(app, id)).toMatchObject([{ nodeId: nodes[0].id, dueAt: null }])
    await pass({ hours: 1, seconds: 1 })
    expect(await runsOf(app, id)).toMatchObject([{ nodeId: nodes[0].branches[0].nodes[0].id }])
  })

  const forEver = { kind: 'wait_until', branches: [{ condition: { kind: 'event_trigger', name: 'paid' }, nodes: [] }] }
  test.each([
    ['from a later node', [aWait({ duration_seconds: 60 }), aWait({ duration_seconds: 86_400 })]],
    ['from the first', [aWait({ duration_seconds: 86_400 })]],
    ['from the first, where it would wait for ever', [forEver]],
  ])('a run leaves early %s', async (_, nodes) => {
    const [segment, away] = [await aTagSegment(app), await awayFor(2)]
    const { id } = await active({
      audience: bySegments([segment.id]),
      nodes,
      early_exit: { rules: { on_segment: { included_segment_ids: [away] } } },
    })
    await aReachableUser(app, segment.tags)
    await work()
    await pass({ seconds: 60 })
    await pass({ hours: 1 })
    expect(await runsOf(app, id)).toMatchObject([{ state: 'waiting' }])
    await pass({ hours: 1 })
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited' }])
    expect(await countsOf(app, id)).toMatchObject({ started: 1, exited_early: 1 })
  })
})

describe('how often', () => {
  test('a minute after the activation; then every minute where time matters, and else every hour', async () => {
    const often = await active({ audience: bySegments([await awayFor(24)]) })
    const seldom = await active({ audience: bySegments([(await aTagSegment(app)).id]) })
    const never = await active({ audience: { kind: 'event_trigger', name: 'came' } })
    expect([await nextSweep(often.id), await nextSweep(seldom.id)]).toEqual([[60], [60]])
    await pass({ seconds: 60 })
    expect([await nextSweep(often.id), await nextSweep(seldom.id)]).toEqual([[60], [3600]])
    expect(await nextSweep(never.id)).toEqual([])
    const nested = await aSegment(app, [
      tagIs('a', 'b'),
      { operator: 'OR' },
      { group: [{ field: 'event', name: 'came', within_days: 3 }] },
    ])
    await update(app, seldom.id, { audience: { included_segment_ids: [nested] } })
    await work()
    expect(await nextSweep(seldom.id)).toEqual([60])
    await pass({ seconds: 60 })
    expect(await nextSweep(seldom.id)).toEqual([60])
    await update(app, seldom.id, { state: 'archived' })
    await pass({ seconds: 60 })
    expect(await nextSweep(seldom.id)).toEqual([])
  })

  test('an edit that changes whom it is for is followed at once; a new name is not', async () => {
    const [first, second] = [await aTagSegment(app), await aTagSegment(app)]
    const { id } = await active({ audience: bySegments([first.id]) })
    const user = await aReachableUser(app, second.tags)
    await pass({ seconds: 60 })
    expect(await usersIn(id)).toEqual([])
    await update(app, id, { name: 'Another' })
    expect(await nextSweep(id)).toEqual([3600])
    await update(app, id, { audience: { included_segment_ids: [second.id] } })
    await work()
    expect(await usersIn(id)).toEqual([user.id])
    // And once more when every transaction that began before is over.
    expect(await nextSweep(id)).toEqual([60])
    await pass({ seconds: 60 })
    expect(await nextSweep(id)).toEqual([3600])
  })
})

test('everybody of a large app is found whom no news told of, each once', async () => {
  const tags = { crowd: aName() }
  const segment = await aSegment(app, [tagIs('crowd', tags.crowd)])
  const { id } = await active({ audience: bySegments([segment]) })
  const made = await recipients({ db: app.db, clock }, app.tenant.id, 10_050, { tags })
  await recipients({ db: app.db, clock }, app.tenant.id, 20)
  const { work: listen } = aJourneyWorker(app, clock, false)
  clock.advance({ seconds: 60 })
  await listen()
  expect(await countsOf(app, id)).toEqual({ started: made.length })
  expect((await usersIn(id)).sort()).toEqual(made.map(({ userId }) => userId).sort())
  await tag(app, { path: `/users/by/onesignal_id/${made[0]?.userId}` }, { other: 'thing' })
  clock.advance({ hours: 1 })
  await listen()
  expect(await countsOf(app, id)).toEqual({ started: made.length })
})
