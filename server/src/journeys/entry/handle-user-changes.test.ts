import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer } from '../../../test/engine.ts'
import {
  aJourneyWorker,
  anActiveJourney,
  anAppOf,
  aReachableUser,
  aTagSegment,
  countsOf,
  putRun,
  runsOf,
  tag,
  untilBlocked,
} from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { aWait, someReferences, update } from '../../../test/journeys.ts'
import { aName, anEmail, aUser, type MadeUser, view } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import type { JobRun } from '../../queue/job.ts'
import { sql } from '../../storage/sql.ts'
import { recordFeedEntries, setWatches } from '../../users/change-feed/change-feed.ts'
import type { NewFeedEntry } from '../../users/change-feed/feed.ts'
import { handleUserChanges } from './handle-user-changes.ts'

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
/** Listens, but moves nothing. */
const listen = () => aJourneyWorker(app, clock, false).work()
const active = (fields: object) => anActiveJourney(app, work, fields as Record<string, unknown>)
const bySegments = (included: string[], excluded: string[] = []) => ({
  kind: 'segment',
  included_segment_ids: included,
  excluded_segment_ids: excluded,
})
const byEvent = (name: string, ...attributes: object[]) => ({
  kind: 'event_trigger',
  name,
  attributes: attributes.length > 0 ? [attributes] : [],
})
const told = (user: MadeUser, name: string, properties: object = {}) =>
  record(app, [{ name, external_id: user.externalId, properties }])
const usersIn = async (journeyId: string) => (await runsOf(app, journeyId)).map(({ userId }) => userId)
const newsLeft = () => app.db.query(sql`select 1 from user_news where app_id = ${app.tenant.id}`)
const note = async (news: NewFeedEntry[]) => {
  const jobs = await recordFeedEntries(app.db, app.tenant.id, news, clock.now())
  expect(jobs).toHaveLength(1)
  await aJourneyWorker(app, clock).runs.queue.enqueue(app.db, jobs)
}

/** A turn at the news that nobody disputes. */
const mine = () =>
  ({
    job: { appId: app.tenant.id },
    isStopping: () => false,
    isStillHeld: async () => true,
    recordProgress: async () => {},
  }) as unknown as JobRun

describe('a user enters by a segment', () => {
  test('when they come to be in it, once, whatever happens later', async () => {
    const segment = await aTagSegment(app)
    const { id } = await active({ audience: bySegments([segment.id]) })
    const user = await aReachableUser(app)
    await work()
    expect(await usersIn(id)).toEqual([])
    await tag(app, user, segment.tags)
    await work()
    const [run] = await runsOf(app, id)
    expect(run).toMatchObject({ userId: user.id, state: 'waiting', entryEvent: null })
    expect(run?.nodeId).not.toBeNull()
    await tag(app, user, segment.untagged)
    await work()
    await tag(app, user, segment.tags)
    await work()
    expect(await usersIn(id)).toEqual([user.id])
    expect(await countsOf(app, id)).toEqual({ started: 1 })
  })

  test('as somebody new', async () => {
    const segment = await aTagSegment(app)
    const { id } = await active({ audience: bySegments([segment.id]) })
    const user = await aReachableUser(app, segment.tags)
    // A segment is made of subscriptions.
    await aUser(app, { properties: { tags: segment.tags } })
    await work()
    expect(await usersIn(id)).toEqual([user.id])
  })

  test('but not while any of their subscriptions is in one that is excluded', async () => {
    const [inside, outside] = [await aTagSegment(app), await aTagSegment(app)]
    const { id } = await active({ audience: bySegments([inside.id], [outside.id]) })
    const user = await aReachableUser(app, { ...inside.tags, ...outside.tags })
    await work()
    expect(await usersIn(id)).toEqual([])
    await tag(app, user, outside.untagged)
    await work()
    expect(await usersIn(id)).toEqual([user.id])
  })

  test('excluded counts for the whole user, included for any subscription', async () => {
    const mails = await app.app('/segments', {
      body: { name: aName(), filters: [{ field: 'device_type', relation: '=', value: 'Email' }] },
    })
    const pushes = await app.app('/segments', {
      body: { name: aName(), filters: [{ field: 'device_type', relation: '=', value: 'iOSPush' }] },
    })
    expect([mails.status, pushes.status]).toEqual([201, 201])
    const { id } = await active({ audience: bySegments([mails.body.id], [pushes.body.id]) })
    const mail = () => ({ type: 'Email', token: anEmail() })
    const one = await aUser(app, { subscriptions: [mail()] })
    const both = await aUser(app, { subscriptions: [mail(), { type: 'iOSPush', token: aName('ab') }] })
    expect(both.subscriptionIds).toHaveLength(2)
    await work()
    expect(await usersIn(id)).toEqual([one.id])
  })

  test.each(['included', 'excluded'])('and nobody does where one that is %s was deleted', async (which) => {
    const [kept, gone] = [await aTagSegment(app), await aTagSegment(app)]
    const audience = which === 'included' ? bySegments([gone.id]) : bySegments([kept.id], [gone.id])
    const { id } = await active({ audience })
    await app.db.query(sql`delete from segments where app_id = ${app.tenant.id} and id = ${gone.id}`)
    await aReachableUser(app, kept.tags)
    await aReachableUser(app, { ...kept.tags, ...gone.tags })
    await work()
    expect(await usersIn(id)).toEqual([])
    expect(await newsLeft()).toEqual([])
  })

  test('where one of several was deleted, by the others', async () => {
    const [kept, gone] = [await aTagSegment(app), await aTagSegment(app)]
    const { id } = await active({ audience: bySegments([gone.id, kept.id]) })
    await app.db.query(sql`delete from segments where app_id = ${app.tenant.id} and id = ${gone.id}`)
    await aReachableUser(app, gone.tags)
    const user = await aReachableUser(app, kept.tags)
    await work()
    expect(await usersIn(id)).toEqual([user.id])
  })
})

describe('a user enters by an event', () => {
  test('of the name and with the attributes that are asked for, each time', async () => {
    const cheap = await active({ audience: byEvent('bought') })
    const dear = await active({
      audience: byEvent(
        'bought',
        { key: 'price', operator: 'greater', value: '10' },
        { key: 'sku', operator: 'exists' },
      ),
    })
    const user = await aReachableUser(app)
    await told(user, 'sold', { price: 20, sku: 'bell' })
    await told(user, 'bought', { price: 5, sku: 'bell' })
    await told(user, 'bought', { price: 20 })
    await told(user, 'bought', { price: 30, sku: 'bell' })
    await work()
    expect(await countsOf(app, cheap.id)).toEqual({ started: 3 })
    const runs = await runsOf(app, dear.id)
    expect(runs).toMatchObject([
      { userId: user.id, state: 'waiting', entryEvent: { name: 'bought', properties: { price: 30, sku: 'bell' } } },
    ])
    expect(runs[0]?.slot).toBe(runs[0]?.id)
    await told(user, 'bought', { price: 30, sku: 'bell' })
    await work()
    expect(await countsOf(app, dear.id)).toEqual({ started: 2 })
  })

  test('that came after the journey was active', async () => {
    const before = await active({ audience: byEvent('bought') })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    clock.advance({ seconds: 1 })
    // The worker is late, and another journey begins before it hears of the event.
    const { id } = await app
      .app('/journeys', { body: { name: 'x', nodes: [aWait()], audience: byEvent('bought') } })
      .then(({ body }) => body)
    await app.db.query(sql`
      update journeys set state = 'active', started_at = ${clock.now()} where app_id = ${app.tenant.id} and id = ${id}`)
    await work()
    expect(await countsOf(app, before.id)).toEqual({ started: 1 })
    expect(await countsOf(app, id)).toEqual({})
    await told(user, 'bought')
    await work()
    expect(await countsOf(app, id)).toEqual({ started: 1 })
  })

  test('also when the journey becomes active while news are being taken', async () => {
    const user = await aReachableUser(app)
    const { runs } = aJourneyWorker(app, clock)
    let journeyId = ''
    const live: typeof runs.live = {
      ...runs.live,
      async lockAllForShare(db, appId) {
        const held = await runs.live.lockAllForShare(db, appId)
        journeyId = (await active({ audience: byEvent('bought') })).id
        await told(user, 'bought')
        return held
      },
    }
    await handleUserChanges({ ...runs, live })(mine())
    await work()
    expect(await usersIn(journeyId)).toEqual([user.id])
  })

  test('who is gone meanwhile does not', async () => {
    const { id } = await active({ audience: byEvent('bought') })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    await app.db.query(sql`delete from users where app_id = ${app.tenant.id} and id = ${user.id}`)
    await listen()
    expect(await runsOf(app, id)).toEqual([])
  })
})

describe('early exit', () => {
  const twoSteps = [aWait({ duration_seconds: 60 }), aWait({ duration_seconds: 86_400 })]

  test('by the event that let in: the first step is done before', async () => {
    const { id } = await active({
      audience: byEvent('bought'),
      nodes: twoSteps,
      early_exit: { rules: { on_event: { name: 'bought' } } },
    })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'waiting', wantsExit: true }])
    clock.advance({ seconds: 60 })
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited' }])
    expect(await countsOf(app, id)).toMatchObject({ started: 1, exited_early: 1 })
  })

  test('by the event that let in, also where somebody was let in by hand', async () => {
    const { id } = await active({
      audience: byEvent('bought'),
      nodes: twoSteps,
      early_exit: { rules: { on_event: { name: 'bought' } } },
    })
    const user = await aReachableUser(app)
    const body = { external_id: user.externalId, event: { properties: {} } }
    expect((await app.app(`/journeys/${id}/users`, { body })).status).toBe(201)
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'waiting', wantsExit: true }])
    clock.advance({ seconds: 60 })
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited' }])
  })

  test('by an event that comes later, not by one that came before', async () => {
    const { id } = await active({
      audience: byEvent('came'),
      nodes: twoSteps,
      early_exit: { rules: { on_event: { name: 'left' } } },
    })
    const [user, other] = [await aReachableUser(app), await aReachableUser(app)]
    await told(user, 'left')
    clock.advance({ seconds: 1 })
    await told(user, 'came')
    await told(other, 'came')
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ wantsExit: false }, { wantsExit: false }])
    clock.advance({ seconds: 60 })
    await work()
    await told(user, 'left')
    await work()
    const states = new Map((await runsOf(app, id)).map(({ userId, state }) => [userId, state]))
    expect(states).toEqual(
      new Map([
        [user.id, 'exited'],
        [other.id, 'waiting'],
      ]),
    )
  })

  test('by a session', async () => {
    const segment = await aTagSegment(app)
    const { id } = await active({
      audience: bySegments([segment.id]),
      nodes: twoSteps,
      early_exit: { rules: { on_session: true } },
    })
    const user = await aReachableUser(app, segment.tags)
    await work()
    clock.advance({ seconds: 60 })
    await work()
    await tag(app, user, { other: 'thing' })
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'waiting', wantsExit: false }])
    await app.app(user.path, { method: 'PATCH', body: { deltas: { session_count: 1 } } })
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited' }])
    expect(await countsOf(app, id)).toMatchObject({ started: 1, exited_early: 1 })
  })

  test('by coming into a segment, and by leaving the audience', async () => {
    const [audience, exit] = [await aTagSegment(app), await aTagSegment(app)]
    const into = await active({
      audience: bySegments([audience.id]),
      nodes: twoSteps,
      early_exit: { rules: { on_segment: { included_segment_ids: [exit.id] } } },
    })
    const outOf = await active({
      audience: bySegments([audience.id]),
      nodes: twoSteps,
      early_exit: { rules: { when_not_in_audience: true } },
    })
    const user = await aReachableUser(app, audience.tags)
    await work()
    clock.advance({ seconds: 60 })
    await work()
    await tag(app, user, exit.tags)
    await work()
    expect(await runsOf(app, into.id)).toMatchObject([{ state: 'exited' }])
    expect(await runsOf(app, outOf.id)).toMatchObject([{ state: 'waiting' }])
    await tag(app, user, audience.untagged)
    await work()
    expect(await runsOf(app, outOf.id)).toMatchObject([{ state: 'exited' }])
  })

  const forEver = (name = 'paid') => ({
    kind: 'wait_until',
    branches: [{ condition: byEvent(name), nodes: [] }],
  })

  test('from the first node too, though nothing else would ever move them from there', async () => {
    const [audience, exit] = [await aTagSegment(app), await aTagSegment(app)]
    const rules = {
      into: { on_segment: { included_segment_ids: [exit.id] } },
      outOf: { when_not_in_audience: true },
      left: { on_event: { name: 'left' } },
      session: { on_session: true },
    }
    const fields = { audience: bySegments([audience.id]), nodes: [forEver(), aWait()] }
    const start = (rules: object) => active({ ...fields, early_exit: { rules, tag_on_early_exit: { gone: '1' } } })
    const [into, outOf, left, session] = [
      await start(rules.into),
      await start(rules.outOf),
      await start(rules.left),
      await start(rules.session),
    ]
    const user = await aReachableUser(app, audience.tags)
    await work()
    const states = async () => {
      const runs = await Promise.all([into, outOf, left, session].map(({ id }) => runsOf(app, id)))
      return runs.flat().map(({ state, nodeId }) => `${state} ${nodeId === null ? 'nowhere' : 'there'}`)
    }
    const [waits, gone] = ['waiting there', 'exited there']
    expect(await states()).toEqual([waits, waits, waits, waits])
    await tag(app, user, exit.tags)
    await work()
    expect(await states()).toEqual([gone, waits, waits, waits])
    expect((await view(app, user)).properties.tags.gone).toBe('1')
    await tag(app, user, audience.untagged)
    await work()
    expect(await states()).toEqual([gone, gone, waits, waits])
    await told(user, 'left')
    await work()
    expect(await states()).toEqual([gone, gone, gone, waits])
    await app.app(user.path, { method: 'PATCH', body: { deltas: { session_count: 1 } } })
    await work()
    expect(await states()).toEqual([gone, gone, gone, gone])
    for (const { id } of [into, outOf, left, session])
      expect(await countsOf(app, id)).toMatchObject({ started: 1, exited_early: 1 })
  })

  test('who was in the segment when they came in is done with the first node before', async () => {
    const exit = await aTagSegment(app)
    const { id, nodes } = await active({
      audience: byEvent('bought'),
      nodes: [forEver(), aWait()],
      early_exit: { rules: { on_segment: { included_segment_ids: [exit.id] } } },
    })
    const user = await aReachableUser(app, exit.tags)
    await told(user, 'bought')
    await work()
    const before = await runsOf(app, id)
    expect(before).toMatchObject([{ state: 'waiting', nodeId: nodes[0].id, dueAt: null }])
    await tag(app, user, { other: 'thing' })
    await listen()
    expect(await runsOf(app, id)).toEqual(before)
    await told(user, 'paid')
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited', nodeId: nodes[1].id }])
    const { body: stats } = await app.app(`/journeys/${id}/stats`)
    expect(stats.nodes[nodes[0].id]).toMatchObject({ completed: 1, exited_early: 0 })
  })

  test('to be looked at once more is no reason to leave before the first node is done', async () => {
    const { id } = await active({
      audience: byEvent('bought'),
      nodes: twoSteps,
      early_exit: { rules: { on_event: { name: 'bought' } } },
    })
    await told(await aReachableUser(app), 'bought')
    await work()
    await app.db.query(sql`
      update journey_runs set due_at = ${clock.now()} where app_id = ${app.tenant.id} and journey_id = ${id}`)
    await aJourneyWorker(app, clock).runs.queue.enqueue(
      app.db,
      [0, 1, 2, 3].map((part) => ({ appId: app.tenant.id, name: 'journeys.advance', key: `${id}/${part}` })),
    )
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'waiting', dueAt: new Date(clock.now().getTime() + 60_000) }])
  })

  test('what comes after the entry makes them leave at once, also when both are heard of together', async () => {
    const { id, nodes } = await active({
      audience: byEvent('came'),
      nodes: [forEver(), aWait()],
      early_exit: { rules: { on_event: { name: 'left' } } },
    })
    const user = await aReachableUser(app)
    await told(user, 'came')
    clock.advance({ seconds: 1 })
    await told(user, 'left')
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ state: 'exited', nodeId: nodes[0].id }])
  })
})

describe('a run that waits', () => {
  const untilEvent = (name: string, ...attributes: object[]) => ({
    kind: 'wait_until',
    branches: [{ condition: byEvent(name, ...attributes), nodes: [aWait()] }],
  })

  test('is woken by the event it waits for, and by no other', async () => {
    const node = untilEvent('paid', { key: 'price', operator: 'greater', value: '10' })
    const { id, nodes } = await active({ audience: byEvent('bought'), nodes: [node] })
    const [user, other] = [await aReachableUser(app), await aReachableUser(app)]
    await told(user, 'bought')
    await told(other, 'bought')
    await work()
    clock.advance({ seconds: 1 })
    await told(user, 'paid', { price: 5 })
    await listen()
    expect(await runsOf(app, id)).toMatchObject([{ dueAt: null }, { dueAt: null }])
    await told(user, 'paid', { price: 11 })
    await listen()
    const due = new Map((await runsOf(app, id)).map(({ userId, dueAt }) => [userId, dueAt]))
    expect(due).toEqual(
      new Map([
        [user.id, clock.now()],
        [other.id, null],
      ]),
    )
    await aJourneyWorker(app, clock).runs.queue.enqueue(
      app.db,
      [0, 1, 2, 3].map((part) => ({ appId: app.tenant.id, name: 'journeys.advance', key: `${id}/${part}` })),
    )
    await work()
    const at = new Map((await runsOf(app, id)).map(({ userId, nodeId }) => [userId, nodeId]))
    expect(at.get(user.id)).toBe(nodes[0].branches[0].nodes[0].id)
    expect(at.get(other.id)).toBe(nodes[0].id)
  })

  test('is woken by the segment it waits for', async () => {
    const segment = await aTagSegment(app)
    const condition = {
      kind: 'segment_membership',
      included_segment_ids: [segment.id],
      excluded_segment_ids: [],
    }
    const { id, nodes } = await active({
      audience: byEvent('bought'),
      nodes: [{ kind: 'wait_until', branches: [{ condition, nodes: [aWait()] }] }],
    })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ nodeId: nodes[0].id, dueAt: null }])
    await tag(app, user, segment.tags)
    await work()
    expect(await runsOf(app, id)).toMatchObject([{ nodeId: nodes[0].branches[0].nodes[0].id }])
  })

  test('is woken by an action on its own message alone', async () => {
    const { pushId } = await someReferences(app)
    const condition = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }
    const { id, nodes } = await active({
      audience: byEvent('bought'),
      nodes: [
        { kind: 'send_push', template_id: pushId, client_node_id: 'hello' },
        { kind: 'wait_until', branches: [{ condition, nodes: [] }] },
        aWait(),
      ],
    })
    const user = await aReachableUser(app)
    const [first, second, third] = nodes.map(({ id }: { id: string }) => id)
    const mine = await putRun(app, clock, id, user.id, [first, second])
    const another = await putRun(app, clock, id, user.id, [first, second])
    const elsewhere = await putRun(app, clock, id, user.id, [first, second, third])
    clock.advance({ seconds: 1 })
    for (const runId of [mine, elsewhere]) await note([{ userId: user.id, kind: 'action', runId }])
    await listen()
    const due = new Map((await runsOf(app, id)).map(({ id, dueAt }) => [id, dueAt]))
    expect(due).toEqual(
      new Map([
        [mine, clock.now()],
        [another, null],
        [elsewhere, null],
      ]),
    )
  })

  test('hears of what happened while it was on its way there', async () => {
    const { id, nodes } = await active({ audience: byEvent('bought'), nodes: [aWait(), untilEvent('paid')] })
    const user = await aReachableUser(app)
    const runId = await putRun(app, clock, id, user.id, [nodes[0].id])
    await told(user, 'paid')
    let reacting: Promise<unknown> | undefined
    await app.db.transaction(async (db) => {
      await db.query(sql`select 1 from journey_runs where app_id = ${app.tenant.id} and id = ${runId} for update`)
      reacting = listen()
      await untilBlocked(app)
      await db.query(sql`
        update journey_runs set node_id = ${nodes[1].id}, path = path || ${nodes[1].id}::uuid
        where app_id = ${app.tenant.id} and id = ${runId}`)
    })
    await reacting
    expect(await runsOf(app, id)).toMatchObject([{ nodeId: nodes[1].id, dueAt: clock.now() }])
  })
})

describe('an archived journey', () => {
  test('gets nobody any more', async () => {
    const { id } = await active({ audience: byEvent('bought') })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    expect((await update(app, id, { state: 'archived' })).status).toBe(200)
    await listen()
    expect(await runsOf(app, id)).toEqual([])
    expect(await newsLeft()).toEqual([])
  })

  test('nor does one that is just being archived', async () => {
    const { id } = await active({ audience: byEvent('bought') })
    const user = await aReachableUser(app)
    await told(user, 'bought')
    let reacting: Promise<unknown> | undefined
    await app.db.transaction(async (db) => {
      await db.query(sql`
        update journeys set state = 'archived', archived_at = ${clock.now()}
        where app_id = ${app.tenant.id} and id = ${id}`)
      reacting = listen()
      await untilBlocked(app)
    })
    await reacting
    expect(await runsOf(app, id)).toEqual([])
  })
})

test('nobody is lost when journeys cannot be asked for hours', async () => {
  const segment = await aTagSegment(app)
  const { id } = await active({ audience: bySegments([segment.id]) })
  const broken = aJourneyWorker(app, clock, true, 'silent')
  Object.assign(broken.runs.live, {
    holdAll: () => Promise.reject(new Error('out of order')),
    find: () => Promise.reject(new Error('out of order')),
  })
  const [told, overlooked] = [await aReachableUser(app, segment.tags), await aReachableUser(app)]
  for (let hours = 0; hours < 8; hours += 0.25) {
    clock.advance({ minutes: 15 })
    await broken.work()
  }
  // Nobody was told of this one: a sweep finds them.
  await app.db.query(sql`
    update users set tags = ${segment.tags} where app_id = ${app.tenant.id} and id = ${overlooked.id}`)
  clock.advance({ minutes: 15 })
  await work()
  expect((await usersIn(id)).sort()).toEqual([told.id, overlooked.id].sort())
})

test('news that concern no journey are gone, and nothing comes of them', async () => {
  const user = await aReachableUser(app)
  await setWatches(app.db, app.tenant.id, [{ kind: 'change', name: '' }])
  await note([{ userId: user.id, kind: 'change' }])
  await work()
  expect(await newsLeft()).toEqual([])
})

test('whoever takes news at once lets everybody in once, and counts them once', async () => {
  const segment = await aTagSegment(app)
  const condition = { kind: 'segment_membership', included_segment_ids: [segment.id], excluded_segment_ids: [] }
  const waiting = { kind: 'wait_until', branches: [{ condition, nodes: [aWait()] }] }
  const first = await active({ audience: bySegments([segment.id]) })
  const second = await active({ audience: bySegments([segment.id]), nodes: [waiting] })
  const users = await Promise.all(Array.from({ length: 60 }, () => aReachableUser(app, segment.tags)))
  for (let times = 0; times < 3; times++)
    await note(
      Array.from({ length: 30 }, () => users).flatMap((it) => it.map(({ id }) => ({ userId: id, kind: 'change' }))),
    )
  await Promise.all([1, 2, 3, 4].map(() => handleUserChanges(aJourneyWorker(app, clock).runs)(mine())))
  expect(await newsLeft()).toEqual([])
  const expected = users.map(({ id }) => id).sort()
  for (const { id } of [first, second]) {
    expect(await countsOf(app, id)).toEqual({ started: users.length })
    expect((await usersIn(id)).sort()).toEqual(expected)
  }
  await Promise.all([work(), work()])
  for (const { id } of [first, second]) expect(await countsOf(app, id)).toEqual({ started: users.length })
})
