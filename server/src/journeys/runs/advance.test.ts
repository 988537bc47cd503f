// Every kind of node, run by the real jobs on a virtual clock. How people enter is tested elsewhere: here they are put in.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer, type FakeSender, fakeSender } from '../../../test/engine.ts'
import { record } from '../../../test/events.ts'
import { aReadyJourney, someReferences, update } from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { anEmailTemplate, aPush, templatesOf } from '../../../test/templates.ts'
import { aName, anEmail, aPhone, aUser, type MadeUser, view as viewUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createQueue } from '../../queue/enqueue.ts'
import { reserveMessages } from '../../sending/reserve.ts'
import type { SendWebhook } from '../../sending/send-notice.ts'
import { sql } from '../../storage/sql.ts'
import { advanceJob } from '../jobs.ts'
import { findSent } from '../sends/message-store.ts'
import { changeCounts } from '../stats-store.ts'
import { type RunEvent, shardAt } from './run.ts'
import { insertRuns } from './run-store.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let sender: FakeSender
let calls: Parameters<SendWebhook>[0][]
let answerTo: () => ChannelOutcome

beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})
beforeEach(() => {
  sender = fakeSender()
  calls = []
  answerTo = () => ({ kind: 'sent' })
})

const work = () =>
  aWorker(app, clock, {
    sender,
    sendWebhook: async (webhook) => {
      calls.push(webhook)
      return answerTo()
    },
  }).runDue()

const ENTRY = 'came in'
type Fields = Record<string, unknown>

async function aLive(nodes: unknown[], fields: Fields = {}) {
  const journey = await aReadyJourney(app, { audience: { kind: 'event_trigger', name: ENTRY }, nodes, ...fields })
  const answer = await update(app, journey.id, { state: 'active' })
  expect(answer.status).toBe(200)
  await work()
  return journey
}

const somebody = (properties: Fields = {}) =>
  aUser(app, {
    properties,
    subscriptions: [
      { type: 'AndroidPush', token: aName('token') },
      { type: 'Email', token: anEmail() },
      { type: 'SMS', token: aPhone() },
    ],
  })

type Journey = Awaited<ReturnType<typeof aLive>>

/** As an event would let them in. */
async function enter(journey: Journey, users: readonly MadeUser[], properties: Fields = {}) {
  const { db, tenant } = app
  const now = clock.now()
  const event = (): RunEvent => ({ id: newId(), name: ENTRY, at: now.toISOString(), properties })
  const runs = users.map(({ id }) => ({ id: newId(), journeyId: journey.id, userId: id, event: event() }))
  await db.transaction(async (db) => {
    await insertRuns(db, tenant.id, shardAt(now), runs, now)
    await changeCounts(db, tenant.id, journey.id, 4, [{ placeId: journey.id, fact: 'started', by: runs.length }])
    const audience = { kind: 'event_trigger' } as const
    await createQueue({ clock, newId }).enqueue(db, [advanceJob(tenant.id, { id: journey.id, audience }, shardAt(now))])
  })
  await work()
  return runs.map(({ id }) => id)
}

const runRow = async (id: string) => {
  const [row] = await app.db.query<{ state: string; nodeId: string | null; dueAt: Date | null; path: string[] }>(sql`
    select state, node_id, due_at, path from journey_runs where app_id = ${app.tenant.id} and id = ${id}`)
  return row
}

const stats = async (journey: Journey) => (await app.app(`/journeys/${journey.id}/stats`)).body

/** Forward, to a moment. */
const goTo = (moment: string) => clock.advance({ ms: Date.parse(moment) - clock.now().getTime() })

async function later(seconds: number) {
  clock.advance({ seconds })
  await work()
}

const tags = async (user: MadeUser) => (await viewUser(app, user)).properties.tags

/** Marks where somebody came by. */
const mark = (name: string) => ({ kind: 'tag', assignments: { [name]: 'yes' } })

describe('wait', () => {
  test('rests for its time, to the second, and then goes on', async () => {
    const journey = await aLive([{ kind: 'wait', duration_seconds: 600 }, mark('after')])
    const user = await somebody()
    const [run = ''] = await enter(journey, [user])
    expect(await runRow(run)).toMatchObject({
      state: 'waiting',
      nodeId: journey.nodes[0].id,
      dueAt: new Date(clock.now().getTime() + 600_000),
    })
    await later(599)
    expect((await stats(journey)).nodes[journey.nodes[0].id]).toMatchObject({ waiting: 1, completed: 0 })
    expect(await tags(user)).toEqual({})
    await later(1)
    expect(await tags(user)).toEqual({ after: 'yes' })
    expect(await runRow(run)).toMatchObject({
      state: 'completed',
      dueAt: null,
      path: journey.nodes.map(({ id }: { id: string }) => id),
    })
    expect(await stats(journey)).toMatchObject({
      started: 1,
      completed: 1,
      exited_early: 0,
      nodes: {
        [journey.nodes[0].id]: { waiting: 0, completed: 1, exited_early: 0 },
        [journey.nodes[1].id]: { waiting: 0, completed: 1, exited_early: 0 },
      },
    })
  })
})

describe('time_window', () => {
  const window = (fields: Fields) => ({
    kind: 'time_window',
    relative_to: 'schedule_in_timezone',
    windows: [{ start: { hour: 12, minute: 0 }, end: { hour: 14, minute: 0 } }],
    time_zone: 'UTC',
    use_user_time_zone: false,
    ...fields,
  })

  test('releases at a moment inside the window, by the clock of the user where that is wanted', async () => {
    goTo('2030-02-01T09:00:00Z')
    const journey = await aLive([window({ use_user_time_zone: true }), mark('after')])
    const [here, there] = [await somebody(), await somebody({ timezone_id: 'Asia/Tokyo' })]
    const [a = '', b = ''] = await enter(journey, [here, there])
    const [first, second] = [(await runRow(a))?.dueAt as Date, (await runRow(b))?.dueAt as Date]
    expect(first.getTime()).toBeGreaterThanOrEqual(Date.parse('2030-02-01T12:00:00Z'))
    expect(first.getTime()).toBeLessThan(Date.parse('2030-02-01T14:00:00Z'))
    // Noon in Tokyo was six hours ago.
    expect(second.getTime()).toBeGreaterThanOrEqual(Date.parse('2030-02-02T03:00:00Z'))
    expect(second.getTime()).toBeLessThan(Date.parse('2030-02-02T05:00:00Z'))
    goTo(first.toISOString())
    await work()
    expect([await tags(here), await tags(there)]).toEqual([{ after: 'yes' }, {}])
    // Inside it nobody waits.
    goTo('2030-02-01T13:30:00Z')
    const third = await somebody()
    await enter(journey, [third])
    expect(await tags(third)).toEqual({ after: 'yes' })
  })

  test('or at the time of day at which the user was last there', async () => {
    goTo('2030-02-03T15:00:00Z')
    const journey = await aLive([{ kind: 'time_window', relative_to: 'last_active_time' }, mark('after')])
    const user = await somebody({ last_active: Date.parse('2030-02-01T18:20:00Z') / 1_000 })
    const [run = ''] = await enter(journey, [user])
    expect((await runRow(run))?.dueAt).toEqual(new Date('2030-02-03T18:20:00Z'))
    // Before clocks are put forward there, and after.
    const lastActive = Date.parse('2030-03-08T23:00:00Z') / 1_000
    const there = await somebody({ timezone_id: 'America/New_York', last_active: lastActive })
    goTo('2030-03-12T12:00:00Z')
    const [another = ''] = await enter(journey, [there])
    expect((await runRow(another))?.dueAt).toEqual(new Date('2030-03-12T22:00:00Z'))
  })
})

describe('sending', () => {
  test('push, email and text go out through the engine of all messages, each once, and are counted at their nodes', async () => {
    const it = await someReferences(app)
    const journey = await aLive([
      { kind: 'send_push', template_id: it.pushId },
      { kind: 'send_email', template_id: it.emailId },
      { kind: 'send_sms', template_id: it.smsId },
    ])
    const users = [await somebody(), await somebody()]
    const [run = ''] = await enter(journey, users)
    await work()
    expect(sender.calls.map(({ outgoing }) => outgoing.kind).sort()).toEqual([
      ...['email', 'email'],
      ...['push', 'push'],
      ...['sms', 'sms'],
    ])
    expect((await runRow(run))?.state).toBe('completed')
    const { nodes } = await stats(journey)
    for (const { id } of journey.nodes) expect(nodes[id]).toMatchObject({ completed: 2, waiting: 0 })
    const hidden = await app.db.query<{ isListed: boolean; kind: number }>(sql`
      select m.is_listed, m.kind from messages m join journey_messages j on j.app_id = m.app_id and j.message_id = m.id
      where j.app_id = ${app.tenant.id} and j.journey_id = ${journey.id}`)
    expect(hidden).toEqual(Array.from({ length: 3 }, () => ({ isListed: false, kind: 3 })))
    await work()
    expect(sender.calls).toHaveLength(6)
  })

  test('Liquid sees the event that let the user in', async () => {
    const template = await templatesOf(app).create(
      aPush({ contents: { en: '{{ journey.name }}: {{ journey.first_event.properties.item }} for {{ nick }}' } }),
    )
    const journey = await aLive([{ kind: 'send_push', template_id: template.body.id }], { name: 'Bells' })
    await enter(journey, [await somebody({ tags: { nick: 'Kim' } })], { item: 'a rope' })
    await work()
    const content = sender.calls[0]?.outgoing.content as { body?: string } | undefined
    expect(JSON.stringify(content)).toContain('Bells: a rope for Kim')
  })

  test('Liquid sees the first and the last event that led the user on, and each by its name', async () => {
    const text = [
      '{{ journey.first_event.properties.item }}',
      '{{ journey.last_event.name }} {{ journey.last_event.properties.item }}',
      '{{ journey.event.paid.properties.item }}',
    ].join(' | ')
    const { body } = await templatesOf(app).create(aPush({ contents: { en: text } }))
    const send = { kind: 'send_push', template_id: body.id }
    const when = (name: string) => ({
      kind: 'event_trigger',
      name,
      attributes: [[{ key: 'item', operator: 'exists' }]],
    })
    const tag = (name: string) => ({ kind: 'tag', assignments: { [name]: text } })
    const journey = await aLive([
      send,
      { kind: 'wait_until', branches: [{ condition: when('paid'), nodes: [tag('paid')] }] },
      send,
      { kind: 'wait', duration_seconds: 60 },
      { kind: 'yes_no', branches: [{ condition: when('rated'), nodes: [tag('rated')] }, { nodes: [] }] },
      send,
    ])
    const user = await somebody()
    const does = (name: string, properties: object) =>
      record(app, [{ name, external_id: user.externalId, timestamp: clock.now().toISOString(), properties }])
    await enter(journey, [user], { item: 'a rope' })
    await work()
    clock.advance({ seconds: 1 })
    await does('paid', {})
    await does('paid', { item: 'a bell' })
    await work()
    expect(await tags(user)).toEqual({ paid: 'a rope | paid a bell | a bell' })
    clock.advance({ seconds: 1 })
    await does('paid', { item: 'a hammer' })
    await does('rated', { item: 'a book' })
    await later(60)
    const sent = sender.calls.map(({ outgoing }) => /"(a rope[^"]*)"/.exec(JSON.stringify(outgoing.content))?.[1])
    expect(sent).toEqual([
      `a rope | ${ENTRY} a rope | `,
      'a rope | paid a bell | a bell',
      'a rope | rated a book | a bell',
    ])
    expect((await tags(user)).rated).toBe('a rope | rated a book | a bell')
  })

  test('who came in by a segment has no event before one has led them on', async () => {
    const { body } = await templatesOf(app).create(
      aPush({ contents: { en: 'First: {{ journey.first_event.name | default: "none" }}.' } }),
    )
    const send = { kind: 'send_push', template_id: body.id }
    const condition = { kind: 'event_trigger', name: 'paid' }
    const [key, value] = [aName('tag'), 'yes']
    const audience = { kind: 'segment', included_segment_ids: [await aSegment(app, [tagIs(key, value)])] }
    const user = await somebody({ tags: { [key]: value } })
    await aLive([send, { kind: 'wait_until', branches: [{ condition, nodes: [] }] }, send], { audience })
    clock.advance({ seconds: 1 })
    await record(app, [{ name: 'paid', external_id: user.externalId }])
    await work()
    const sent = sender.calls.map(({ outgoing }) => /First: (\w+)/.exec(JSON.stringify(outgoing.content))?.[1])
    expect(sent).toEqual(['none', 'paid'])
  })

  test('a new version of the template is what later runs send', async () => {
    const made = await templatesOf(app).create(aPush({ contents: { en: 'Old' } }))
    const journey = await aLive([{ kind: 'send_push', template_id: made.body.id }])
    await enter(journey, [await somebody()])
    await work()
    const changed = await app.request(`/templates/${made.body.id}?app_id=${app.tenant.id}`, {
      method: 'PATCH',
      body: { contents: { en: 'New' } },
    })
    expect(changed.status).toBe(200)
    await enter(journey, [await somebody()])
    await work()
    expect(sender.calls.map(({ outgoing }) => JSON.stringify(outgoing.content).match(/Old|New/)?.[0])).toEqual([
      'Old',
      'New',
    ])
  })

  test('a template that no message can be made of holds nobody up', async () => {
    const made = await templatesOf(app).create(aPush({ include_unsubscribed: true }))
    expect(made.status).toBe(200)
    const journey = await aLive([{ kind: 'send_push', template_id: made.body.id }, mark('after')])
    const user = await somebody()
    const [run = ''] = await enter(journey, [user])
    expect(await runRow(run)).toMatchObject({ state: 'completed' })
    expect(await tags(user)).toEqual({ after: 'yes' })
    expect(sender.calls).toEqual([])
  })

  test('waits, and says so, while the app may not send', async () => {
    const { pushId } = await someReferences(app)
    const journey = await aLive([{ kind: 'send_push', template_id: pushId }])
    await app.db.transaction((db) => reserveMessages(db, app.tenant.id, 1_000_000, clock.now()))
    const [run = ''] = await enter(journey, [await somebody()])
    // Nobody looks at it before the window has room again, as far as that can be told.
    const dueAt = (await runRow(run))?.dueAt as Date
    expect(dueAt.getTime() - clock.now().getTime()).toBeGreaterThan(14 * 60_000)
    await later(61)
    expect((await runRow(run))?.dueAt).toEqual(dueAt)
    expect(sender.calls).toEqual([])
    expect((await stats(journey)).nodes[journey.nodes[0].id]).toMatchObject({ waiting: 1, completed: 0 })
    // It ends by itself when the window has room again.
    await later(16 * 60)
    await work()
    expect(sender.calls).toHaveLength(1)
    expect((await runRow(run))?.state).toBe('completed')
  })
})

test('who waits until the app may send goes on when it is enabled by hand', async () => {
  const { pushId } = await someReferences(app)
  const journey = await aLive([{ kind: 'send_push', template_id: pushId }])
  await app.db.transaction((db) => reserveMessages(db, app.tenant.id, 1_000_000, clock.now()))
  const [run = ''] = await enter(journey, [await somebody()])
  expect((await runRow(run))?.state).toBe('waiting')
  expect((await app.app('/sending/enable', { method: 'POST' })).status).toBe(200)
  await work()
  expect((await runRow(run))?.state).toBe('completed')
  await work()
  expect(sender.calls).toHaveLength(1)
})

describe('send_iam', () => {
  test('lets the user see the message, for as long as the node says', async () => {
    const { iamId } = await someReferences(app)
    const journey = await aLive([{ kind: 'send_iam', iam_id: iamId, user_ttl_seconds: 300 }])
    const user = await somebody()
    await enter(journey, [user])
    const grants = await app.db.query<{ expiresAt: Date }>(sql`
      select expires_at from in_app_grants where app_id = ${app.tenant.id} and user_id = ${user.id}`)
    expect(grants).toEqual([{ expiresAt: new Date(clock.now().getTime() + 300_000) }])
  })
})

describe('send_webhook', () => {
  test('tells the receiver once for each run, signed, and again under the same id when it was not taken', async () => {
    const { webhookId } = await someReferences(app)
    const journey = await aLive([{ kind: 'send_webhook', webhook_id: webhookId }], { name: 'Bells' })
    const user = await somebody({ tags: { plan: 'gold' } })
    answerTo = () => ({ kind: 'retry', reason: 'busy' })
    const [run = ''] = await enter(journey, [user], { item: 'rope' })
    expect(calls).toHaveLength(1)
    expect((await runRow(run))?.state).toBe('completed')
    answerTo = () => ({ kind: 'sent' })
    await later(5)
    expect(calls).toHaveLength(2)
    expect(calls[1]?.id).toBe(calls[0]?.id)
    expect(calls[0]?.secrets).toHaveLength(1)
    expect(JSON.parse(calls[1]?.body ?? '')).toMatchObject({
      type: 'journey.webhook',
      data: {
        app_id: app.tenant.id,
        journey_id: journey.id,
        journey_name: 'Bells',
        node_id: journey.nodes[0].id,
        run_id: run,
        user: { onesignal_id: user.id, external_id: user.externalId, tags: { plan: 'gold' } },
        event: { name: ENTRY, properties: { item: 'rope' } },
      },
    })
    await later(3_600)
    expect(calls).toHaveLength(2)
    expect((await stats(journey)).nodes[journey.nodes[0].id].message_stats.totals).toEqual({ successful: 1 })
  })

  test('waits while all sending of the app is paused', async () => {
    const { webhookId } = await someReferences(app)
    const journey = await aLive([{ kind: 'send_webhook', webhook_id: webhookId }])
    expect((await app.app('/sending/pause', { method: 'POST' })).status).toBe(200)
    await enter(journey, [await somebody()])
    await later(61)
    expect(calls).toEqual([])
    expect((await app.app('/sending/resume', { method: 'POST' })).status).toBe(200)
    await later(61)
    expect(calls).toHaveLength(1)
  })

  test('gives up after a day', async () => {
    const { webhookId } = await someReferences(app)
    const journey = await aLive([{ kind: 'send_webhook', webhook_id: webhookId }])
    answerTo = () => ({ kind: 'failed', reason: 'refused' })
    await enter(journey, [await somebody()])
    for (let hour = 0; hour < 26; hour++) await later(3_600)
    const tried = calls.length
    expect(tried).toBeGreaterThan(20)
    await later(86_400)
    expect(calls).toHaveLength(tried)
    expect((await stats(journey)).nodes[journey.nodes[0].id].message_stats.totals).toEqual({ failed: 1 })
  })
})

describe('tag', () => {
  test('values are rendered, and an empty one takes the tag away', async () => {
    const journey = await aLive([
      { kind: 'tag', assignments: { greeting: 'Hello {{ nick }} {{ journey.first_event.properties.n }}', old: '' } },
    ])
    const user = await somebody({ tags: { nick: 'Kim', old: 'x', kept: 'k' } })
    await enter(journey, [user], { n: 7 })
    expect(await tags(user)).toEqual({ nick: 'Kim', kept: 'k', greeting: 'Hello Kim 7' })
  })

  test('a value with Liquid that comes out empty leaves the tag as it is', async () => {
    const assignments = { name: '{{ nick }}', plan: '{% if level == "gold" %}gold{% endif %}', old: '' }
    const journey = await aLive([{ kind: 'tag', assignments }])
    const [known, unknown] = [
      await somebody({ tags: { nick: 'Kim', level: 'gold', old: 'x' } }),
      await somebody({ tags: { name: 'Ada', plan: 'silver', old: 'x' } }),
    ]
    await enter(journey, [known, unknown])
    expect(await tags(known)).toEqual({ nick: 'Kim', level: 'gold', name: 'Kim', plan: 'gold' })
    expect(await tags(unknown)).toEqual({ name: 'Ada', plan: 'silver' })
  })

  test('what follows on it sees it', async () => {
    const value = aName('plan')
    const segmentId = await aSegment(app, [tagIs('level', value)])
    const journey = await aLive([
      { kind: 'tag', assignments: { level: value } },
      { kind: 'tag', assignments: { copy: '{{ level }}' } },
      {
        kind: 'yes_no',
        branches: [
          { condition: { kind: 'segment_membership', included_segment_ids: [segmentId] }, nodes: [mark('in')] },
          { nodes: [mark('out')] },
        ],
      },
    ])
    const user = await somebody()
    await enter(journey, [user])
    expect(await tags(user)).toEqual({ level: value, copy: value, in: 'yes' })
  })
})

describe('split_range', () => {
  test('leads everybody down one branch, and all on to the next node', async () => {
    const journey = await aLive([
      {
        kind: 'split_range',
        branches: [
          { weight: 50, nodes: [mark('a')] },
          { weight: 50, nodes: [mark('b')] },
        ],
      },
      mark('both'),
    ])
    const users = await Promise.all(Array.from({ length: 40 }, () => somebody()))
    await enter(journey, users)
    const seen = await Promise.all(users.map(tags))
    for (const it of seen) expect(Object.keys(it).sort()).toEqual([it.a ? 'a' : 'b', 'both'])
    const [a, b] = journey.nodes[0].branches.map(({ id }: { id: string }) => id)
    const { branches } = await stats(journey)
    expect(branches[a].completed).toBe(seen.filter((it) => it.a).length)
    expect(branches[a].completed + branches[b].completed).toBe(40)
    expect(branches[a].completed).toBeGreaterThan(8)
  })

  test('the same one for a user whenever they come by, unless it is drawn on entry', async () => {
    const branches = [
      { weight: 50, nodes: [] },
      { weight: 50, nodes: [] },
    ]
    const user = await somebody()
    const taken = async (randomize_on_entry: boolean) => {
      const journey = await aLive([{ kind: 'split_range', randomize_on_entry, branches }])
      await enter(journey, Array(24).fill(user))
      const counts = Object.values((await stats(journey)).branches as Record<string, { completed: number }>)
      return counts.map(({ completed }) => completed).sort((a, b) => a - b)
    }
    expect(await taken(false)).toEqual([0, 24])
    const [less = 0, more = 0] = await taken(true)
    expect([less > 0, less + more]).toEqual([true, 24])
  })
})

describe('yes_no', () => {
  test('by segment: any subscription included, none excluded', async () => {
    const [plan, bad] = [aName('plan'), aName('bad')]
    const included = await aSegment(app, [tagIs('plan', plan)])
    const excluded = await aSegment(app, [tagIs('bad', bad)])
    const condition = {
      kind: 'segment_membership',
      included_segment_ids: [included],
      excluded_segment_ids: [excluded],
    }
    const journey = await aLive([
      { kind: 'yes_no', branches: [{ condition, nodes: [mark('yes')] }, { nodes: [mark('no')] }] },
    ])
    const users = [await somebody({ tags: { plan } }), await somebody({ tags: { plan, bad } }), await somebody()]
    await enter(journey, users)
    const seen = await Promise.all(users.map(tags))
    expect(seen.map((it) => [it.yes, it.no])).toEqual([
      ['yes', undefined],
      [undefined, 'yes'],
      [undefined, 'yes'],
    ])
  })

  test('by an event since the run began, with its attributes and those of the entry event', async () => {
    const condition = {
      kind: 'event_trigger',
      name: 'bought',
      attributes: [[{ key: 'price', operator: 'greater', value: '10' }]],
      entry_event_match_attributes: [{ key: 'order', entry_key: 'order' }],
    }
    const journey = await aLive([
      { kind: 'wait', duration_seconds: 60 },
      { kind: 'yes_no', branches: [{ condition, nodes: [mark('yes')] }, { nodes: [mark('no')] }] },
    ])
    const users = await Promise.all(Array.from({ length: 4 }, () => somebody()))
    const [rich, cheap, other, before] = users as [MadeUser, MadeUser, MadeUser, MadeUser]
    const bought = (user: MadeUser, payload: object) =>
      record(app, [{ name: 'bought', onesignal_id: user.id, payload }])
    await bought(before, { price: 20, order: 1 })
    clock.advance({ seconds: 1 })
    await enter(journey, users, { order: 1 })
    clock.advance({ seconds: 1 })
    await bought(rich, { price: 20, order: 1 })
    await bought(cheap, { price: 5, order: 1 })
    await bought(other, { price: 20, order: 2 })
    await later(60)
    expect((await Promise.all(users.map(tags))).map((it) => it.yes ?? 'no')).toEqual(['yes', 'no', 'no', 'no'])
  })
})

describe('wait_until', () => {
  const until = (fields: Fields = {}) => ({
    kind: 'wait_until',
    branches: [
      {
        condition: { kind: 'event_trigger', name: 'paid', attributes: [], entry_event_match_attributes: [] },
        nodes: [mark('paid')],
      },
    ],
    expiration: { duration_seconds: 3_600, exits: false },
    ...fields,
  })

  test('what is met already leads on at once, top down', async () => {
    const plan = aName('plan')
    const segmentId = await aSegment(app, [tagIs('plan', plan)])
    const condition = { kind: 'segment_membership', included_segment_ids: [segmentId] }
    const journey = await aLive([
      until({
        branches: [...until().branches, { condition, nodes: [mark('first')] }, { condition, nodes: [mark('second')] }],
      }),
    ])
    const user = await somebody({ tags: { plan } })
    await enter(journey, [user])
    expect(await tags(user)).toEqual({ plan, first: 'yes' })
  })

  test('goes on when its time is over', async () => {
    const journey = await aLive([until(), mark('after')])
    const user = await somebody()
    const [run = ''] = await enter(journey, [user])
    await later(3_599)
    expect(await tags(user)).toEqual({})
    await later(1)
    expect(await tags(user)).toEqual({ after: 'yes' })
    expect((await runRow(run))?.state).toBe('completed')
  })

  test('or leaves the journey then', async () => {
    const journey = await aLive([until({ expiration: { duration_seconds: 60, exits: true } }), mark('after')])
    const user = await somebody()
    const [run = ''] = await enter(journey, [user])
    await later(60)
    expect(await tags(user)).toEqual({})
    expect((await runRow(run))?.state).toBe('exited')
    expect(await stats(journey)).toMatchObject({
      completed: 0,
      exited_early: 1,
      nodes: { [journey.nodes[0].id]: { waiting: 0, completed: 0, exited_early: 1 } },
    })
  })

  test('an event counts that came before its time was over, however late it is seen', async () => {
    const journey = await aLive([until(), mark('after')])
    const [inTime, tooLate] = [await somebody(), await somebody()]
    await enter(journey, [inTime, tooLate])
    const pay = ({ externalId }: MadeUser) =>
      record(app, [{ name: 'paid', external_id: externalId, timestamp: clock.now().toISOString() }])
    clock.advance({ seconds: 3_600 })
    await pay(inTime)
    clock.advance({ seconds: 1 })
    await pay(tooLate)
    await later(7_200)
    expect(await tags(inTime)).toEqual({ paid: 'yes', after: 'yes' })
    expect(await tags(tooLate)).toEqual({ after: 'yes' })
  })

  test('waits for ever without one', async () => {
    const journey = await aLive([until({ expiration: null })])
    const [run = ''] = await enter(journey, [await somebody()])
    expect(await runRow(run)).toMatchObject({ state: 'waiting', dueAt: null })
  })

  test('for what the user does with a message', async () => {
    const { pushId } = await someReferences(app)
    const journey = await aLive([
      { kind: 'send_push', template_id: pushId, client_node_id: 'hello' },
      until({
        branches: [
          {
            condition: { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' },
            nodes: [mark('clicked')],
          },
        ],
        expiration: { duration_seconds: 600, exits: true },
      }),
    ])
    const users = [await somebody(), await somebody()] as const
    await enter(journey, users)
    await work()
    const [message] = await app.db.query<{ id: string }>(sql`
      select message_id as id from journey_messages where app_id = ${app.tenant.id} and journey_id = ${journey.id}`)
    const clicked = await app.request(`/notifications/${message?.id}`, {
      method: 'PUT',
      body: { app_id: app.tenant.id, player_id: users[0].subscriptionIds[0], opened: true },
    })
    expect(clicked.status).toBe(200)
    await later(600)
    expect(await Promise.all(users.map(tags))).toEqual([{ clicked: 'yes' }, {}])
  })
})

describe('what became of a message', () => {
  async function aClickWaiter() {
    const { pushId } = await someReferences(app)
    const condition = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }
    return aLive([
      { kind: 'send_push', template_id: pushId, client_node_id: 'hello' },
      { kind: 'wait_until', branches: [{ condition, nodes: [mark('clicked')] }], expiration: null },
    ])
  }

  const messagesOf = (journey: Journey) =>
    app.db.query<{ id: string }>(sql`
      select message_id as id from journey_messages where app_id = ${app.tenant.id} and journey_id = ${journey.id}`)

  test('is looked up in the messages of the day on which it was sent, not in those of a year', async () => {
    const journey = await aClickWaiter()
    const [runId = ''] = await enter(journey, [await somebody()])
    const [message] = await messagesOf(journey)
    await app.db.query(sql`
      insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
      select app_id, journey_id, node_id, day + n * interval '1 day', template_id, template_revision, gen_random_uuid()
      from journey_messages cross join generate_series(-200, 200) n
      where app_id = ${app.tenant.id} and journey_id = ${journey.id} and n <> 0`)
    clock.advance({ days: 3 })
    const nodeId = journey.nodes[0].id
    expect(await findSent(app.db, app.tenant.id, journey.id, [{ runId, nodeId }], clock.now())).toEqual([
      { runId, nodeId, messageId: message?.id },
    ])
  })

  test('is found when the run came to the node on a day, and was sent to on the next', async () => {
    const journey = await aClickWaiter()
    const user = await somebody()
    clock.advance({ ms: 86_400_000 - (clock.now().getTime() % 86_400_000) - 60_000 })
    await app.db.transaction((db) => reserveMessages(db, app.tenant.id, 1_000_000, clock.now()))
    const [run = ''] = await enter(journey, [user])
    expect(await messagesOf(journey)).toEqual([])
    await later(16 * 60)
    await work()
    const [message] = await messagesOf(journey)
    const clicked = await app.request(`/notifications/${message?.id}`, {
      method: 'PUT',
      body: { app_id: app.tenant.id, player_id: user.subscriptionIds[0], opened: true },
    })
    expect(clicked.status).toBe(200)
    await work()
    expect(await tags(user)).toEqual({ clicked: 'yes' })
    expect(await runRow(run)).toMatchObject({ state: 'completed' })
  })
})

describe('emails', () => {
  test('a journey says who it is from', async () => {
    const made = await templatesOf(app).create(anEmailTemplate({ email_subject: 'Hello {{ nick }}' }))
    const journey = await aLive([{ kind: 'send_email', template_id: made.body.id }])
    await enter(journey, [await somebody({ tags: { nick: 'Kim' } })])
    await work()
    expect(JSON.stringify(sender.calls[0]?.outgoing.content)).toContain('Hello Kim')
  })
})
