import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { checksums } from '../../../test/authorization/checksums.ts'
import { record } from '../../../test/events.ts'
import {
  aJourney,
  codes,
  everyKind,
  JOURNEY_NOT_FOUND,
  someReferences,
  titles,
  update,
} from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aStoredMessage, deliver } from '../../../test/stored-messages.ts'
import { aName, anEmail, aUser } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { pickNumber } from '../nodes/pick.ts'
import { pickBranch } from '../nodes/split-range.ts'
import { createDryRunContext, endDryRuns, simulate as simulateJourney } from './simulate.ts'

const START = '2030-01-01T09:00:00.000Z'
const clock = virtualClock(START)
const HOUR = 3_600
const DAY = 24 * HOUR

let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

type Fields = Record<string, unknown>
const simulate = (id: string, body: Fields = {}) => app.app(`/journeys/${id}/simulate`, { body })
async function report(id: string, body: Fields = {}) {
  const answer = await simulate(id, body)
  if (answer.status !== 200) throw new Error(`no report: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}
const later = (seconds: number) => new Date(Date.parse(START) + seconds * 1_000).toISOString()
const wait = (seconds: number) => ({ kind: 'wait', duration_seconds: seconds })

/** So many users of a plan of their own, with an email address each, and the segment of that plan. */
async function people(count: number, properties: Fields = {}) {
  const plan = aName('plan')
  const segmentId = await aSegment(app, [tagIs('plan', plan)])
  const { tags, ...rest } = { tags: {}, ...properties }
  const users = []
  for (let n = 0; n < count; n++)
    users.push(
      await aUser(app, {
        properties: { tags: { plan, ...(tags as object) }, ...rest },
        subscriptions: [{ type: 'Email', token: anEmail() }],
      }),
    )
  return { users, plan, segmentId, audience: { kind: 'segment', included_segment_ids: [segmentId] } }
}

/** A node in the order of the answer: kind, arrived, completed, exited, waiting at the end. */
const line = (it: Fields) => [it.kind, it.arrived, it.completed, it.exited_early, it.waiting_at_end]

describe('a report', () => {
  test('tells of waits: who comes by, who waits, how long it takes, when all go on at once', async () => {
    const { audience } = await people(3)
    const journey = await aJourney(app, { audience, nodes: [wait(HOUR), wait(2 * DAY)] })
    const [first, second] = journey.nodes.map(({ id }: { id: string }) => id)
    const found = await report(journey.id, { days: 7 })
    expect(found).toEqual({
      journey_id: journey.id,
      users: 3,
      sample_share: 1,
      estimated_total: { factor: 1, started: 3, sends: 0 },
      start_at: START,
      end_at: later(7 * DAY),
      started: 3,
      completed: 3,
      exited_early: 0,
      still_inside: 0,
      time_to_complete: {
        p50_seconds: 2 * DAY + HOUR,
        p90_seconds: 2 * DAY + HOUR,
        max_seconds: 2 * DAY + HOUR,
      },
      sends: [],
      sends_by_day: [],
      nodes: {
        [first]: {
          kind: 'wait',
          arrived: 3,
          completed: 3,
          exited_early: 0,
          waiting_at_end: 0,
          most_waiting: { count: 3, at: START },
        },
        [second]: {
          kind: 'wait',
          arrived: 3,
          completed: 3,
          exited_early: 0,
          waiting_at_end: 0,
          most_waiting: { count: 3, at: later(HOUR) },
        },
      },
      branches: {},
      never_reached: [],
      pile_ups: [
        { node_id: first, at: later(HOUR), count: 3, share: 1 },
        { node_id: second, at: later(2 * DAY + HOUR), count: 3, share: 1 },
      ],
      rates: [],
      assumptions: [
        'Everybody who is in the audience at the start enters then; those who join it later are not foreseen.',
        'Users stay as they are in the snapshot, but for the tags that the journey sets.',
      ],
    })
    expect((await report(journey.id, { days: 1 })).nodes[second]).toMatchObject({ arrived: 3, waiting_at_end: 3 })
    expect(await report(journey.id, { days: 1 })).toMatchObject({ still_inside: 3, time_to_complete: null })
  })

  test('tells what is sent, on which day, and whom it can reach', async () => {
    const { audience } = await people(2)
    const { emailId, pushId, smsId, iamId, webhookId } = await someReferences(app)
    const journey = await aJourney(app, {
      audience,
      nodes: [
        { kind: 'send_email', template_id: emailId },
        wait(15 * HOUR),
        { kind: 'send_push', template_id: pushId },
        { kind: 'send_sms', template_id: smsId },
        { kind: 'send_iam', iam_id: iamId, user_ttl_seconds: null },
        { kind: 'send_webhook', webhook_id: webhookId },
      ],
    })
    const [email, , push, sms, iam, hook] = journey.nodes.map(({ id }: { id: string }) => id)
    const found = await report(journey.id)
    // Fifteen hours after nine it is another day.
    expect(found.sends).toEqual([
      { day: '2030-01-01', node_id: email, channel: 'email', count: 2, reachable: 2 },
      { day: '2030-01-02', node_id: push, channel: 'push', count: 2, reachable: 0 },
      { day: '2030-01-02', node_id: sms, channel: 'sms', count: 2, reachable: 0 },
      { day: '2030-01-02', node_id: iam, channel: 'in_app', count: 2, reachable: 2 },
      { day: '2030-01-02', node_id: hook, channel: 'webhook', count: 2, reachable: 2 },
    ])
    expect(found.sends_by_day).toEqual([
      { day: '2030-01-01', count: 2, reachable: 2 },
      { day: '2030-01-02', count: 8, reachable: 4 },
    ])
    expect(found).toMatchObject({ completed: 2, estimated_total: { sends: 10 } })
  })

  test('a time window lets people through by their own clocks', async () => {
    const { audience, users } = await people(1, { timezone_id: 'America/New_York' })
    const windows = [{ start: { hour: 9, minute: 0 }, end: { hour: 9, minute: 15 } }]
    const journey = await aJourney(app, {
      audience,
      nodes: [
        {
          kind: 'time_window',
          relative_to: 'schedule_in_timezone',
          windows,
          time_zone: 'UTC',
          use_user_time_zone: true,
        },
      ],
    })
    const found = await report(journey.id, { days: 1 })
    // Nine in New York is 14:00 in UTC; where in the quarter of an hour is drawn.
    const seconds = 5 * HOUR + pickNumber(users[0]?.id as string, journey.nodes[0].id) * 900
    expect(found.time_to_complete.max_seconds).toBe(Math.floor(seconds))
    expect(found).toMatchObject({ completed: 1, still_inside: 0 })
  })

  test('a window by the last activity is the time of day at which somebody was last there', async () => {
    const { audience, users } = await people(1)
    await app.db.query(sql`
      insert into user_activity (app_id, user_id, last_active)
      values (${app.tenant.id}, ${users[0]?.id}, ${'2029-12-20T07:00:00Z'})
      on conflict (app_id, user_id) do update set last_active = excluded.last_active`)
    const journey = await aJourney(app, { audience, nodes: [{ kind: 'time_window', relative_to: 'last_active_time' }] })
    expect((await report(journey.id)).time_to_complete.max_seconds).toBe(22 * HOUR)
  })

  test('a split takes the branches that the journey itself will take', async () => {
    const { audience, users } = await people(20)
    const branches = [
      { weight: 30, nodes: [wait(HOUR)] },
      { weight: 70, nodes: [] },
      { weight: 0, nodes: [wait(DAY)] },
    ]
    const journey = await aJourney(app, {
      audience,
      nodes: [{ kind: 'split_range', randomize_on_entry: false, branches }],
    })
    const [node] = journey.nodes
    const expected = Map.groupBy(users, ({ id }) => pickBranch(journey.id, node, { userId: id, id: 'any' }))
    const found = await report(journey.id)
    for (const { id } of node.branches) expect(found.branches[id].taken).toBe(expected.get(id)?.length ?? 0)
    expect(found.never_reached).toEqual([node.branches[2].nodes[0].id])
    expect(found.completed).toBe(20)
  })

  test('yes_no asks segments; a tag that the journey sets is seen by them', async () => {
    const { audience, users } = await people(4)
    await app.app(users[0]?.path as string, { method: 'PATCH', body: { properties: { tags: { vip: 'yes' } } } })
    const vip = await aSegment(app, [tagIs('vip', 'yes')])
    const plain = await aSegment(app, [{ field: 'tag', key: 'vip', relation: 'not_exists' }])
    const isIn = (segmentId: string, nodes: object[] = []) => ({
      kind: 'yes_no',
      branches: [
        {
          condition: { kind: 'segment_membership', included_segment_ids: [segmentId], excluded_segment_ids: [] },
          nodes,
        },
        { nodes: [] },
      ],
    })
    const journey = await aJourney(app, {
      audience,
      nodes: [
        isIn(vip),
        { kind: 'tag', assignments: { vip: 'yes', other: '{{ first_name }}' } },
        isIn(vip),
        { kind: 'tag', assignments: { vip: '' } },
        isIn(vip),
        isIn(plain, [wait(HOUR)]),
      ],
    })
    const found = await report(journey.id)
    const taken = journey.nodes.flatMap(({ branches = [] }: { branches?: { id: string }[] }) =>
      branches.map(({ id }) => found.branches[id].taken),
    )
    expect(taken).toEqual([1, 3, 4, 0, 0, 4, 4, 0])
    expect(found.assumptions).toContain('Tags whose value holds Liquid are not taken into account by segments.')
  })

  test('segments that look at the time are judged day by day', async () => {
    const { audience } = await people(2)
    // Everybody was there at the start, and nobody comes back.
    const gone = await aSegment(app, [{ field: 'last_session', relation: '>', hours_ago: '36' }])
    const condition = { kind: 'segment_membership', included_segment_ids: [gone], excluded_segment_ids: [] }
    const isGone = () => ({ kind: 'yes_no', branches: [{ condition, nodes: [] }, { nodes: [] }] })
    const journey = await aJourney(app, { audience, nodes: [isGone(), wait(DAY), isGone(), wait(DAY), isGone()] })
    const found = await report(journey.id)
    const taken = [0, 2, 4].map((n) => found.branches[journey.nodes[n].branches[0].id].taken)
    expect(taken).toEqual([0, 0, 2])
    expect(found.assumptions).toContain(
      'Segments that look at the time are judged once for each virtual day, at its beginning.',
    )
  })

  test('wait_until without history: nobody does anything, and the report says so', async () => {
    const { audience } = await people(2)
    const { emailId } = await someReferences(app)
    const until = (condition: object, expiration: object | null) => ({
      kind: 'wait_until',
      branches: [{ condition, nodes: [wait(HOUR)] }],
      expiration,
    })
    const name = aName('never done')
    const journey = await aJourney(app, {
      audience,
      nodes: [
        { kind: 'send_email', template_id: emailId, client_node_id: 'mail' },
        until(
          { kind: 'on_notification_action', action: 'clicked', client_node_id: 'mail' },
          { duration_seconds: DAY, exits: false },
        ),
        until({ kind: 'event_trigger', name }, { duration_seconds: DAY, exits: true }),
      ],
    })
    const found = await report(journey.id)
    expect(journey.nodes.map(({ id }: { id: string }) => line(found.nodes[id]))).toEqual([
      ['send_email', 2, 2, 0, 0],
      ['wait_until', 2, 2, 0, 0],
      ['wait_until', 2, 0, 2, 0],
    ])
    expect(found).toMatchObject({ completed: 0, exited_early: 2, still_inside: 0 })
    expect(found.never_reached).toEqual([1, 2].map((n) => journey.nodes[n].branches[0].nodes[0].id))
    expect(found.assumptions).toEqual(
      expect.arrayContaining([
        `Nobody did "${name}" in the last 30 days, so nobody does it in the dry run.`,
        'No email message was sent in the last 30 days, so none is clicked in the dry run.',
      ]),
    )
    expect(found.rates).toContainEqual({
      kind: 'message',
      channel: 'email',
      action: 'clicked',
      share: 0,
      deliveries: 0,
    })
  })

  test('for ever is for ever', async () => {
    const { audience } = await people(1)
    const condition = { kind: 'event_trigger', name: aName('never done') }
    const journey = await aJourney(app, {
      audience,
      nodes: [{ kind: 'wait_until', branches: [{ condition, nodes: [] }], expiration: null }],
    })
    const found = await report(journey.id, { days: 90 })
    expect(found.nodes[journey.nodes[0].id]).toMatchObject({ arrived: 1, waiting_at_end: 1 })
  })

  test('early exit by a segment comes after the first node; its people are counted where they stood', async () => {
    const { audience, users } = await people(3)
    await app.app(users[0]?.path as string, { method: 'PATCH', body: { properties: { tags: { left: 'yes' } } } })
    const left = await aSegment(app, [tagIs('left', 'yes')])
    const journey = await aJourney(app, {
      audience,
      early_exit: { rules: { on_segment: { included_segment_ids: [left] } } },
      nodes: [wait(HOUR), wait(HOUR)],
    })
    const found = await report(journey.id)
    expect(journey.nodes.map(({ id }: { id: string }) => line(found.nodes[id]))).toEqual([
      ['wait', 3, 3, 0, 0],
      ['wait', 2, 2, 1, 0],
    ])
    expect(found).toMatchObject({ started: 3, completed: 2, exited_early: 1 })
  })

  test('whoever may enter again does, if they still are in the audience', async () => {
    const { audience, plan } = await people(2)
    const again = { audience, reentry_rules: { duration_seconds: DAY } }
    const journey = await aJourney(app, { ...again, nodes: [wait(DAY)] })
    // In on day 0, out on day 1, in on day 2, out on day 3, in on day 4.
    expect(await report(journey.id, { days: 5 })).toMatchObject({
      users: 2,
      started: 6,
      completed: 4,
      still_inside: 2,
    })
    const leaving = await aJourney(app, { ...again, nodes: [{ kind: 'tag', assignments: { plan: `not ${plan}` } }] })
    expect(await report(leaving.id, { days: 5 })).toMatchObject({ started: 2, completed: 2, still_inside: 0 })
  })

  test('excluded segments keep people out; future additions are told as what they are', async () => {
    const { audience, users, segmentId } = await people(3)
    await app.app(users[0]?.path as string, { method: 'PATCH', body: { properties: { tags: { no: 'yes' } } } })
    const no = await aSegment(app, [tagIs('no', 'yes')])
    const journey = await aJourney(app, {
      audience: { ...audience, excluded_segment_ids: [no], future_additions_only: true },
      nodes: [wait(HOUR)],
    })
    const found = await report(journey.id)
    expect(found.users).toBe(2)
    expect(found.assumptions[0]).toMatch(/^Only users who join the segments after the start will enter/)
    await app.app(`/segments/${no}`, { method: 'DELETE' })
    expect(await report(journey.id)).toMatchObject({ users: 0, sample_share: 1 })
    await app.app(`/segments/${segmentId}`, { method: 'DELETE' })
    expect((await report(journey.id)).assumptions[0]).toMatch(/^Nobody is in the audience/)
  })
})

describe('what the past says', () => {
  test('everybody did it within two hours: they do it again by then', async () => {
    const other = await testApp({ clock })
    try {
      const name = 'bell rung'
      const ids: string[] = []
      for (let n = 0; n < 5; n++) {
        const user = await aUser(other, {
          properties: { tags: { plan: 'bells' } },
          subscriptions: [{ type: 'Email', token: anEmail() }],
        })
        ids.push(user.id)
      }
      const timestamp = later(-2 * HOUR)
      await record(other, [
        ...ids.map((onesignal_id) => ({ name, onesignal_id, timestamp, payload: { loud: true } })),
        { name, onesignal_id: ids[0], timestamp: later(-31 * DAY) },
      ])
      const segmentId = await aSegment(other, [tagIs('plan', 'bells')])
      const audience = { kind: 'segment', included_segment_ids: [segmentId] }
      const until = (seconds: number, attributes: object[] = []) => ({
        kind: 'wait_until',
        branches: [{ condition: { kind: 'event_trigger', name, attributes }, nodes: [] }],
        expiration: { duration_seconds: seconds, exits: true },
      })
      const run = async (fields: Fields, body: Fields = {}) => {
        const journey = await aJourney(other, { audience, ...fields })
        return (await other.app(`/journeys/${journey.id}/simulate`, { body })).body
      }
      const inTime = await run({ nodes: [until(3 * HOUR)] })
      expect(inTime).toMatchObject({ completed: 5, exited_early: 0 })
      expect(inTime.rates[0].shares.slice(0, 3)).toEqual([
        { within_seconds: HOUR, share: 0 },
        { within_seconds: 3 * HOUR, share: 1 },
        { within_seconds: 6 * HOUR, share: 1 },
      ])
      expect(inTime.time_to_complete.p50_seconds).toBeGreaterThanOrEqual(HOUR)
      expect(inTime.time_to_complete.max_seconds).toBeLessThanOrEqual(3 * HOUR)
      expect(await run({ nodes: [until(HOUR)] })).toMatchObject({ completed: 0, exited_early: 5 })
      const loud = (value: string) => [[{ key: 'loud', operator: 'equal', value }]]
      expect(await run({ nodes: [until(3 * HOUR, loud('true'))] })).toMatchObject({ completed: 5 })
      expect(await run({ nodes: [until(3 * HOUR, loud('false'))] })).toMatchObject({ completed: 0 })
      // An exit by the event: out of the second wait, for the first node is always done.
      const early = await run({ early_exit: { rules: { on_event: { name } } }, nodes: [wait(HOUR), wait(DAY)] })
      expect(early).toMatchObject({ completed: 0, exited_early: 5 })

      const byEvent = await run({ audience: { kind: 'event_trigger', name }, nodes: [wait(HOUR)] })
      // Two hours before the end of thirty days.
      expect(byEvent).toMatchObject({ users: 5, started: 5, completed: 5, sample_share: 1 })
      expect(byEvent.nodes[Object.keys(byEvent.nodes)[0] as string].most_waiting).toEqual({
        count: 5,
        at: later(30 * DAY - 2 * HOUR),
      })
      // Of fewer days the newest are looked at.
      const ofOneDay = await run({ audience: { kind: 'event_trigger', name }, nodes: [wait(HOUR)] }, { days: 1 })
      expect(ofOneDay).toMatchObject({ users: 5, started: 5, completed: 5 })
      expect(
        await run({ audience: { kind: 'event_trigger', name, attributes: loud('false') }, nodes: [] }),
      ).toMatchObject({
        users: 0,
      })
    } finally {
      await other.close()
    }
  })

  test('messages are clicked as often as they were, by those whom they reach', async () => {
    const other = await testApp({ clock })
    try {
      const reached = { type: 'AndroidPush', token: aName('token') }
      const make = (subscription: { type: string; token: string }) =>
        aUser(other, { properties: { tags: { plan: 'clicks' } }, subscriptions: [subscription] })
      const user = await make(reached)
      await make({ type: 'Email', token: anEmail() })
      const message = await aStoredMessage(other, { at: new Date(later(-DAY)), state: 'done' })
      await deliver(other, message, [{ subscriptionId: user.subscriptionIds[0] as string, userId: user.id }])
      await other.db.query(sql`
        insert into message_counts (app_id, message_id, platform, state, part, count)
        values (${other.tenant.id}, ${message.id}, 'AndroidPush', 'clicked', 0, 1)`)
      const { pushId } = await someReferences(other)
      const segmentId = await aSegment(other, [tagIs('plan', 'clicks')])
      const condition = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'push' }
      const journey = await aJourney(other, {
        audience: { kind: 'segment', included_segment_ids: [segmentId] },
        nodes: [
          { kind: 'send_push', template_id: pushId, client_node_id: 'push' },
          {
            kind: 'wait_until',
            branches: [{ condition, nodes: [] }],
            expiration: { duration_seconds: 2 * DAY, exits: true },
          },
        ],
      })
      const { body } = await other.app(`/journeys/${journey.id}/simulate`, { body: {} })
      expect(body).toMatchObject({ completed: 1, exited_early: 1 })
      expect(body.time_to_complete.max_seconds).toBeLessThanOrEqual(DAY)
      expect(body.assumptions).toContain(
        '100 % of push messages are clicked, as in the last 30 days (1 deliveries), within a day of being sent. Whose is drawn.',
      )
    } finally {
      await other.close()
    }
  })
})

describe('a dry run', () => {
  test('of every kind of node is the same every time, and writes nothing', async () => {
    const { audience } = await people(30)
    const journey = await aJourney(app, { audience, nodes: everyKind(await someReferences(app)) })
    const before = await checksums(app.db, [app.tenant.id])
    const first = await report(journey.id)
    expect(first.started).toBe(30)
    expect(first.started).toBe(first.completed + first.exited_early + first.still_inside)
    expect(await report(journey.id)).toEqual(first)
    expect(await checksums(app.db, [app.tenant.id])).toEqual(before)
  })

  test('is for journeys in any state, also without nodes or an audience', async () => {
    const draft = await aJourney(app)
    expect(await report(draft.id)).toMatchObject({ users: 0, started: 0, nodes: {}, pile_ups: [] })
    const { audience } = await people(2)
    const journey = await aJourney(app, { audience, nodes: [wait(HOUR)] })
    await update(app, journey.id, { state: 'active' })
    expect(await report(journey.id)).toMatchObject({ started: 2, completed: 2 })
  })

  test('takes a fair sample, and says what everything comes to', async () => {
    const { audience } = await people(10)
    const { emailId } = await someReferences(app)
    const journey = await aJourney(app, { audience, nodes: [{ kind: 'send_email', template_id: emailId }] })
    expect(await report(journey.id, { sample: 4 })).toMatchObject({
      users: 4,
      started: 4,
      sample_share: 0.4,
      estimated_total: { factor: 2.5, started: 10, sends: 10 },
    })
    expect(await report(journey.id, { sample: 'all' })).toMatchObject({ users: 10, sample_share: 1 })
  })

  test('begins when it is told to', async () => {
    const { audience } = await people(1)
    const journey = await aJourney(app, { audience, nodes: [wait(HOUR)] })
    const found = await report(journey.id, { start_at: '2030-03-01T00:00:00+01:00', days: 1 })
    expect(found).toMatchObject({ start_at: '2030-02-28T23:00:00.000Z', end_at: '2030-03-01T23:00:00.000Z' })
  })

  test('is one at a time for an app, over all servers; other apps go on', async () => {
    const { audience } = await people(1)
    const journey = await aJourney(app, { audience, nodes: [wait(HOUR)] })
    const { id } = app.tenant
    await app.db.transaction(async (db) => {
      await db.query(sql`select pg_advisory_xact_lock(22745571, hashtext(${id}))`)
      const refused = await simulate(journey.id)
      expect(refused.status).toBe(409)
      expect(codes(refused)).toEqual(['journey-simulation-running'])
      expect(titles(refused)).toEqual(['A dry run of this app is under way. Try again when it is done.'])
      const another = await app.anotherTenant()
      const headers = { authorization: `Key ${another.key}` }
      const made = await app.request(`/apps/${another.id}/journeys`, { body: { name: 'Theirs' }, headers })
      const path = `/apps/${another.id}/journeys/${made.body.id}/simulate`
      expect((await app.request(path, { method: 'POST', headers })).status).toBe(200)
    })
    expect((await simulate(journey.id)).status).toBe(200)
  })

  test('ends when its caller goes away, and leaves nothing behind', async () => {
    const { audience } = await people(8)
    // Enter again every ten minutes for ninety days, through hundreds of splits each time: a minute's work at least.
    const branches = [
      { weight: 50, nodes: [] },
      { weight: 50, nodes: [] },
    ]
    const nodes = Array.from({ length: 499 }, () => ({ kind: 'split_range', randomize_on_entry: true, branches }))
    const journey = await aJourney(app, { audience, reentry_rules: { duration_seconds: 600 }, nodes })
    const leaving = new AbortController()
    const gone = fetch(`${app.url}/apps/${app.tenant.id}/journeys/${journey.id}/simulate`, {
      method: 'POST',
      headers: { authorization: `Key ${app.tenant.key}`, 'content-type': 'application/json' },
      body: '{"days": 90}',
      signal: leaving.signal,
    })
    await lockIsTaken(true)
    leaving.abort()
    await expect(gone).rejects.toThrow()
    await lockIsTaken(false)
    expect((await simulate((await aJourney(app)).id)).status).toBe(200)
  })

  test('that takes too long is told so', async () => {
    const { id } = await aJourney(app)
    const hasty = createDryRunContext({ db: app.db, connection: app.connection, patienceMs: 1 })
    const asked = simulateJourney(
      hasty,
      app.tenant.id,
      id,
      {},
      { now: clock.now(), signal: new AbortController().signal },
    )
    await expect(asked).rejects.toMatchObject({ kind: 'invalid', problems: [{ code: 'journey-simulation-too-long' }] })
    expect(hasty.threads.size).toBe(0)
  })

  test('that is under way ends with the server', async () => {
    const { id } = await aJourney(app)
    const leaving = createDryRunContext({ db: app.db, connection: app.connection })
    const asked = simulateJourney(
      leaving,
      app.tenant.id,
      id,
      {},
      { now: clock.now(), signal: new AbortController().signal },
    )
    const refused = expect(asked).rejects.toMatchObject({ kind: 'unavailable' })
    await expect.poll(() => leaving.threads.size).toBe(1)
    await endDryRuns(leaving)
    await refused
  })

  const lockIsTaken = (isTaken: boolean) =>
    expect
      .poll(
        async () => {
          const [row] = await app.db.query<{ count: number }>(
            sql`select count(*) as count from pg_locks l where l.locktype = 'advisory' and l.classid = 22745571`,
          )
          return row?.count === 1
        },
        { timeout: 20_000, interval: 20 },
      )
      .toBe(isTaken)

  test.each([
    { days: 0 },
    { days: 91 },
    { days: 1.5 },
    { days: '30' },
    { days: [] },
    { sample: 0 },
    { sample: -1 },
    { sample: 1_000_001 },
    { sample: 'some' },
    { sample: {} },
    { start_at: 'soon' },
    { start_at: 5 },
    { start_at: '2030-02-30T00:00:00Z' },
    { start_at: '2035-01-01T00:00:00Z' },
    { start_at: '0001-01-01T00:00:00Z' },
    { start_at: '2030-01-01T23:59:60Z' },
    [[]],
    'text',
  ])('%j is refused', async (body) => {
    const { id } = await aJourney(app)
    const answer = await app.app(`/journeys/${id}/simulate`, { body })
    expect(answer.status).toBe(400)
    expect(codes(answer)).toEqual(['request-0'])
  })

  test.each([{}, { days: null, sample: null, start_at: null }, { unknown: true }])('%j is taken', async (body) => {
    const { id } = await aJourney(app)
    expect((await simulate(id, body)).body).toMatchObject({ start_at: START, end_at: later(30 * DAY) })
  })

  test('what is not there is a 404', async () => {
    expect(await simulate(newId())).toMatchObject(JOURNEY_NOT_FOUND)
    expect(await simulate('nothing')).toMatchObject(JOURNEY_NOT_FOUND)
  })
})
