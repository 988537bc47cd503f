import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aJourney,
  aWait,
  codes,
  JOURNEY_NOT_FOUND,
  someReferences,
  titles,
  update,
  view,
} from '../../../test/journeys.ts'
import { aKeeper, countsOf, expectExact, ofAnotherApp, putRun, runsOf } from '../../../test/runs.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { anId, aUser, NOBODY, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'

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
const work = () => aKeeper(app, clock).run()

async function aJourneyFor(audience: object, more: object = {}) {
  const { id } = await aJourney(app, { audience, nodes: [aWait()], ...more })
  await update(app, id, { state: 'active' })
  await work()
  return (await view(app, id)).body
}
const forSegment = async (more: object = {}) => {
  const segmentId = await aSegment(app, [tagIs('plan', 'none')])
  return aJourneyFor({ kind: 'segment', included_segment_ids: [segmentId] }, more)
}
const forEvent = (more: object = {}) => aJourneyFor({ kind: 'event_trigger', name: 'bought' }, more)

const add = (id: string, body: object) => app.app(`/journeys/${id}/users`, { body })
const take = (id: string, query: string) => app.app(`/journeys/${id}/users?${query}`, { method: 'DELETE' })
const trace = (id: string, query: string) => app.app(`/journeys/${id}/runs?${query}`)

describe('add a user', () => {
  test('by either name: 201, whoever is in the audience, and the run is due at once', async () => {
    const { id } = await forSegment()
    const [one, two] = [await aUser(app), await aUser(app)]
    const first = await add(id, { external_id: one.externalId })
    expect(told(first)).toEqual({ status: 201, body: { run_id: anId() } })
    expect((await add(id, { onesignal_id: two.id.toUpperCase() })).status).toBe(201)
    const runs = await expectExact(app, id)
    expect(runs.map(({ userId }) => userId).sort()).toEqual([one.id, two.id].sort())
    expect(runs.find(({ userId }) => userId === one.id)).toMatchObject({
      id: first.body.run_id,
      state: 'waiting',
      dueAt: clock.now(),
    })
    const keeper = aKeeper(app, clock)
    await keeper.run()
    expect(keeper.moved.length).toBeGreaterThan(0)
  })

  test('who is in it, or may not enter it again, is a 409, also when asked for at the same time', async () => {
    const { id } = await forSegment()
    const user = await aUser(app)
    const answers = await Promise.all([1, 2, 3, 4].map(() => add(id, { onesignal_id: user.id })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    const again = await add(id, { onesignal_id: user.id })
    expect({ status: again.status, codes: codes(again) }).toEqual({ status: 409, codes: ['journey-user-present'] })
    expect(await expectExact(app, id)).toHaveLength(1)
    await take(id, `onesignal_id=${user.id}`)
    expect((await add(id, { onesignal_id: user.id })).status).toBe(409)
  })

  test('into a journey that events trigger needs an event, and may be done again', async () => {
    const { id } = await forEvent()
    const { externalId } = await aUser(app)
    const without = await add(id, { external_id: externalId })
    expect({ status: without.status, titles: titles(without) }).toEqual({
      status: 400,
      titles: ['event is needed: users enter this journey by an event, {"properties": {…}} says which'],
    })
    const event = { properties: { price: 12, who: { name: 'Ann' } } }
    expect((await add(id, { external_id: externalId, event })).status).toBe(201)
    expect((await add(id, { external_id: externalId, event: {} })).status).toBe(201)
    expect(await expectExact(app, id)).toHaveLength(2)
    const events = await app.db.query<{ entryEvent: { properties: object } }>(sql`
      select entry_event from journey_runs where app_id = ${app.tenant.id} and journey_id = ${id}`)
    expect(events.map(({ entryEvent }) => entryEvent)).toContainEqual({
      id: anId(),
      name: 'bought',
      at: clock.now().toISOString(),
      properties: event.properties,
    })
    const large = await add(id, { external_id: externalId, event: { properties: { text: 'x'.repeat(2_024) } } })
    expect(large.status).toBe(400)
  })

  test('what is wrong is told', async () => {
    const { id } = await forSegment()
    const { externalId, id: userId } = await aUser(app)
    const refused = async (body: object) => {
      const answer = await add(id, body)
      return `${answer.status} ${titles(answer)}`
    }
    const one = '400 Name the user by one of external_id and onesignal_id'
    expect(await refused({})).toBe(one)
    expect(await refused({ external_id: externalId, onesignal_id: userId })).toBe(one)
    expect(await refused({ onesignal_id: 'x' })).toBe('400 Invalid UUID')
    expect(await refused({ onesignal_id: NOBODY })).toBe('404 User not found')
    expect(await refused({ external_id: 'nobody' })).toBe('404 User not found')
    expect(await refused({ external_id: externalId, event: {} })).toBe(
      '400 event is for journeys that an event triggers',
    )
    expect((await add(id, { external_id: 'a\u0000b' })).status).toBeLessThan(500)
    expect((await add(id, { external_id: 7 })).status).toBe(400)
    expect(told(await add(newId(), { external_id: externalId }))).toEqual(JOURNEY_NOT_FOUND)
    const { id: draft } = await aJourney(app)
    const early = await add(draft, { external_id: externalId })
    expect({ status: early.status, codes: codes(early), titles: titles(early) }).toEqual({
      status: 422,
      codes: ['journey-invalid-state'],
      titles: ['Users can enter only while the journey is active; it is draft'],
    })
    expect(await runsOf(app, id)).toEqual([])
  })

  test('an event that PostgreSQL could not store is refused', async () => {
    const { id } = await forEvent()
    const { externalId } = await aUser(app)
    const raw = `{"external_id": "${externalId}", "event": {"properties": {"a": "\\u0000", "b": "\\ud800"}}}`
    const answer = await app.app(`/journeys/${id}/users`, { raw, headers: { 'content-type': 'application/json' } })
    expect(answer.status).toBe(400)
  })
})

describe('remove a user', () => {
  test('ends every run that is under way as an early exit', async () => {
    const { id, nodes } = await forEvent()
    const [user, other] = [await aUser(app), await aUser(app)]
    const nodeId = nodes[0].id
    await putRun(app, clock, id, user.id, { nodeId, isByEvent: true, untilAt: later() })
    await putRun(app, clock, id, user.id, { isByEvent: true })
    await putRun(app, clock, id, user.id, { isByEvent: true, state: 'completed' })
    const stays = await putRun(app, clock, id, other.id, { nodeId, isByEvent: true, untilAt: later() })
    clock.advance({ seconds: 5 })
    expect(told(await take(id, `external_id=${user.externalId}`))).toEqual({
      status: 200,
      body: { success: true, removed: 2 },
    })
    const runs = await expectExact(app, id)
    expect(runs.filter(({ state }) => state === 'waiting').map(({ id }) => id)).toEqual([stays])
    for (const run of runs.filter(({ state }) => state === 'exited'))
      expect(run).toMatchObject({ endedAt: clock.now(), dueAt: null, untilAt: null, arrivedAt: null })
    const counts = await countsOf(app, id)
    expect([counts.get(`${id} exited_early`), counts.get(`${nodeId} exited_early`)]).toEqual([2, 1])
    expect((await take(id, `onesignal_id=${user.id}`)).body).toEqual({ success: true, removed: 0 })
  })

  test('who may enter again may do so after the time that the journey says', async () => {
    const { id } = await forSegment({ reentry_rules: { duration_seconds: 600 } })
    const user = await aUser(app)
    await add(id, { onesignal_id: user.id })
    await take(id, `onesignal_id=${user.id}`)
    expect((await expectExact(app, id))[0]).toMatchObject({
      state: 'exited',
      dueAt: new Date(clock.now().getTime() + 600_000),
    })
  })

  test('what is wrong is told', async () => {
    const { id } = await forSegment()
    const user = await aUser(app)
    expect((await take(id, '')).status).toBe(400)
    expect((await take(id, `onesignal_id=${NOBODY}`)).status).toBe(404)
    expect((await take(id, 'onesignal_id=x')).status).toBe(400)
    expect(told(await take(newId(), `onesignal_id=${user.id}`))).toEqual(JOURNEY_NOT_FOUND)
  })

  test('both are in the audit log', async () => {
    const { id } = await forSegment()
    const user = await aUser(app)
    const run_id = (await add(id, { onesignal_id: user.id })).body.run_id
    await take(id, `onesignal_id=${user.id}`)
    const lines = await app.db.query(sql`
      select action, detail from audit_log where app_id = ${app.tenant.id} and target_id = ${id} and action like '%user'
      order by action`)
    expect(lines).toEqual([
      { action: 'journey.add_user', detail: { onesignal_id: user.id, run_id } },
      { action: 'journey.remove_user', detail: { onesignal_id: user.id, run_ids: [run_id] } },
    ])
  })
})

describe('trace a user', () => {
  const traced = async (id: string, userId: string) => (await trace(id, `onesignal_id=${userId}`)).body.runs

  test('tells where they are, since when, until when, and what they came by', async () => {
    const { id, nodes } = await forSegment({
      nodes: [{ kind: 'split_range', branches: [{ weight: 50, nodes: [aWait()] }, { weight: 50 }] }],
    })
    const user = await aUser(app)
    const [split] = nodes
    const branch = split.branches[0]
    const nodeId = branch.nodes[0].id
    const gone = newId()
    const path = [gone, split.id, branch.id, nodeId]
    const run_id = await putRun(app, clock, id, user.id, { nodeId, untilAt: later(), path })
    const now = clock.now().toISOString()
    expect(told(await trace(id, `external_id=${user.externalId}`))).toEqual({
      status: 200,
      body: {
        journey_id: id,
        journey_state: 'active',
        onesignal_id: user.id,
        runs: [
          {
            run_id,
            state: 'waiting',
            entered_at: now,
            ended_at: null,
            entry_event: null,
            node: { id: nodeId, kind: 'wait' },
            since: now,
            moves_at: later().toISOString(),
            waits_for: [],
            held: false,
            held_reason: null,
            may_enter_again_at: null,
            explanation: `The user waits until ${later().toISOString()}.`,
            path: [
              { node_id: gone, kind: null, at: now },
              { node_id: split.id, kind: 'split_range', at: now },
              { branch_id: branch.id, kind: 'branch', at: now },
              { node_id: nodeId, kind: 'wait', at: now },
            ],
          },
        ],
      },
    })
  })

  test('tells what would move them, where only something that happens can', async () => {
    const segmentId = await aSegment(app, [tagIs('plan', 'gold')])
    const { id, nodes } = await forEvent({
      nodes: [
        {
          kind: 'wait_until',
          branches: [
            { condition: { kind: 'event_trigger', name: 'paid' } },
            { condition: { kind: 'segment_membership', included_segment_ids: [segmentId] } },
          ],
        },
      ],
    })
    const user = await aUser(app)
    await putRun(app, clock, id, user.id, { nodeId: nodes[0].id, isByEvent: true })
    expect(await traced(id, user.id)).toMatchObject([
      {
        entry_event: 'bought',
        node: { kind: 'wait_until' },
        moves_at: null,
        waits_for: ['event_trigger', 'segment_membership'],
        explanation:
          'The user waits for this, however long it takes: an event of the user, or the user comes into a segment.',
      },
    ])
  })

  test('tells that they wait to be sent something while the app may not send', async () => {
    const { pushId } = await someReferences(app)
    const { id, nodes } = await forSegment({ nodes: [{ kind: 'send_push', template_id: pushId }] })
    const user = await aUser(app)
    await putRun(app, clock, id, user.id, { nodeId: nodes[0].id })
    expect(await traced(id, user.id)).toMatchObject([{ held: false, held_reason: null }])
    await app.db.query(sql`
      insert into app_sending (app_id, used, counted_at, disabled_at)
      values (${app.tenant.id}, 1000000, ${clock.now()}, ${clock.now()})`)
    await app.db.query(sql`
      insert into sending_usage (app_id, second, count) values (${app.tenant.id}, ${clock.now()}, 1000000)`)
    expect(await traced(id, user.id)).toMatchObject([
      {
        held: true,
        held_reason: expect.stringContaining('the app has sent more than its application message limit'),
        explanation: expect.stringContaining('The user waits to be sent something.'),
      },
    ])
  })

  test('names every way in which it can be over, and what keeps it from beginning', async () => {
    const { id } = await forSegment()
    const told = async (draft: Parameters<typeof putRun>[4], journey = id) => {
      const user = await aUser(app)
      await putRun(app, clock, journey, user.id, draft)
      return (await traced(journey, user.id))[0].explanation
    }
    expect(await told({ state: 'completed' })).toBe('The user came to the end of the journey.')
    expect(await told({ state: 'exited' })).toMatch(/^The user left the journey before its end/)
    expect(await told({ state: 'stopped' })).toBe('The journey was archived while the user was in it.')
    expect(await told({ state: 'barred' })).toMatch(/^The user was in the audience when the journey was activated/)
    expect(await told({})).toBe('The user has entered, and is about to come to the first node.')
    const { id: draft } = await aJourney(app)
    expect(await told({}, draft)).toBe('The journey is a draft again; the user is about to be taken out.')
  })

  test('newest first, page by page', async () => {
    const { id } = await forEvent()
    const user = await aUser(app)
    const made: string[] = []
    for (let n = 0; n < 3; n++) {
      made.unshift(await putRun(app, clock, id, user.id, { isByEvent: true, state: 'completed' }))
      clock.advance({ seconds: 1 })
    }
    const first = (await trace(id, `onesignal_id=${user.id}&limit=2`)).body
    expect(first.next_cursor).toEqual(expect.any(String))
    const second = (await trace(id, `onesignal_id=${user.id}&limit=2&cursor=${first.next_cursor}`)).body
    expect([...first.runs, ...second.runs].map((run: { run_id: string }) => run.run_id)).toEqual(made)
    expect('next_cursor' in second).toBe(false)
  })

  test('without a user it is a 400; what is not there is a 404', async () => {
    const { id } = await forSegment()
    const user = await aUser(app)
    expect(titles(await trace(id, ''))).toEqual(['Name the user by one of external_id and onesignal_id'])
    expect((await trace(id, `onesignal_id=${NOBODY}`)).status).toBe(404)
    expect(told(await trace(newId(), `onesignal_id=${user.id}`))).toEqual(JOURNEY_NOT_FOUND)
    const farAway = Buffer.from(`-8640000000000000 ${newId()}`).toString('base64url')
    for (const query of ['limit=0', 'limit=101', 'cursor=x', `cursor=${farAway}`])
      expect((await trace(id, `onesignal_id=${user.id}&${query}`)).status).toBe(400)
    expect((await trace(id, `onesignal_id=${user.id}`)).body.runs).toEqual([])
  })
})
