// Members, explanations, previews and estimates, over HTTP.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { unshared } from '../../test/engine.ts'
import { aSegment, refused, tagIs } from '../../test/segments.ts'
import { aName, anEmail, aPhone, aUser, NOBODY, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { createPool } from '../storage/db.ts'
import { addMonths } from '../storage/partitions.ts'
import { sql } from '../storage/sql.ts'
import { readFilters } from './filters/read-filters.ts'
import { daysBefore } from './filters/values.ts'
import { findMembers } from './members.ts'
import { runCounting } from './read.ts'

const clock = virtualClock()
let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const caller = () => ({ appId: app.tenant.id, signal: new AbortController().signal })
const email = () => ({ type: 'Email', token: anEmail() })
const push = (more: object = {}) => ({ type: 'iOSPush', token: aName(), ...more })

async function aCrowd(size: number) {
  const value = aName('crowd')
  const users = []
  for (let i = 0; i < size; i++)
    users.push(await aUser(app, { properties: { tags: { crowd: value } }, subscriptions: [email()] }))
  return { users, filters: [tagIs('crowd', value)] }
}

describe('members', () => {
  test('are everybody in the segment, each once, page by page', async () => {
    const { users, filters } = await aCrowd(7)
    await aUser(app, { subscriptions: [email()] })
    const id = await aSegment(app, filters)
    const expected = users
      .map((user) => ({ subscription_id: user.subscriptionIds[0], onesignal_id: user.id }))
      .sort((a, b) => ((a.subscription_id as string) < (b.subscription_id as string) ? -1 : 1))
    expect(told(await app.app(`/segments/${id}/members`))).toEqual({ status: 200, body: { members: expected } })
    const found: object[] = []
    let cursor = ''
    do {
      const { body } = await app.app(`/segments/${id}/members?limit=3${cursor && `&cursor=${cursor}`}`)
      expect(body.members.length).toBeLessThanOrEqual(3)
      found.push(...body.members)
      cursor = body.next_cursor ?? ''
    } while (cursor)
    expect(found).toEqual(expected)
  })

  test('are found beyond ranges in which nobody is; a page that ends early says where to go on', async () => {
    const { users, filters } = await aCrowd(3)
    const { tree } = readFilters(filters)
    const found: string[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const ctx = { db: app.db, counting: unshared(app.db), now: clock.now }
      const page = await findMembers(ctx, caller(), tree, { limit: 2, cursor }, { first: 1, largest: 2, most: 2 })
      found.push(...page.members.map((it) => it.subscription_id))
      cursor = page.next_cursor
      pages++
    } while (cursor !== undefined)
    expect(found).toEqual(users.flatMap((it) => it.subscriptionIds).sort())
    expect(pages).toBeGreaterThan(3)
  })

  test.each(['limit=0', 'limit=1001', 'cursor=x'])('%s is a 400', async (query) => {
    const id = await aSegment(app, [tagIs('a', 'b')])
    expect((await app.app(`/segments/${id}/members?${query}`)).status).toBe(400)
  })

  test('of a segment that is not there is a 404', async () => {
    expect(told(await app.app(`/segments/${NOBODY}/members`))).toEqual(refused(404, 'segment not found'))
  })
})

describe('preview', () => {
  test('counts unsaved filters and shows who is meant, and saves nothing', async () => {
    const { users, filters } = await aCrowd(3)
    const before = (await app.app('/segments')).body.total_count
    const { status, body } = await app.app('/segments/preview?limit=2', { body: { filters } })
    expect({ status, body }).toMatchObject({ status: 200, body: { subscriber_count: users.length } })
    expect(body.members).toHaveLength(2)
    expect(body.next_cursor).toBe(body.members[1].subscription_id)
    expect((await app.app('/segments')).body.total_count).toBe(before)
  })

  test('tells what is wrong with the filters', async () => {
    expect(told(await app.app('/segments/preview', { body: { filters: [{ field: 'x' }] } }))).toEqual(
      refused(400, 'filters[0]: unknown field "x"'),
    )
  })
})

describe('explain', () => {
  const explained = (id: string, label: string, value: string) =>
    app.app(`/segments/${id}/explain?${new URLSearchParams({ alias_label: label, alias_id: value })}`)

  test('says for each subscription and clause what was seen and whether it holds', async () => {
    const user = await aUser(app, {
      properties: { tags: { plan: 'gold', level: 'ten' }, country: 'DE' },
      subscriptions: [push({ app_version: '1.10', session_count: 2 }), email()],
    })
    const filters = [
      tagIs('plan', 'gold'),
      tagIs('level', '5', '>'),
      { operator: 'OR' },
      {
        group: [
          { field: 'country', relation: '=', value: 'de' },
          { field: 'app_version', relation: '>', value: '1.9' },
        ],
      },
    ]
    const id = await aSegment(app, filters)
    const clauses = (isNewer: boolean) => [
      { entry: 'filters[0]', filter: filters[0], matches: true, value: 'gold' },
      { entry: 'filters[1]', filter: filters[1], matches: false, value: 'ten' },
      {
        entry: 'filters[3].group[0]',
        filter: { field: 'country', relation: '=', value: 'de' },
        matches: true,
        value: 'DE',
      },
      {
        entry: 'filters[3].group[1]',
        filter: { field: 'app_version', relation: '>', value: '1.9' },
        matches: isNewer,
        value: isNewer ? '1.10' : null,
      },
    ]
    const [device, mail] = user.subscriptionIds
    for (const [label, value] of [
      ['external_id', user.externalId],
      ['onesignal_id', user.id],
    ] as const)
      expect(told(await explained(id, label, value))).toEqual({
        status: 200,
        body: {
          onesignal_id: user.id,
          matches: true,
          // Made at the same moment, they stand in the order of their ids.
          subscriptions: [
            { id: device, type: 'iOSPush', matches: true, clauses: clauses(true) },
            { id: mail, type: 'Email', matches: false, clauses: clauses(false) },
          ].sort((a, b) => ((a.id as string) < (b.id as string) ? -1 : 1)),
        },
      })
  })

  test('counts purchases and events that the user itself does not hold', async () => {
    const user = await aUser(app, { subscriptions: [email()] })
    await app.app(user.path, {
      method: 'PATCH',
      body: { deltas: { purchases: [{ sku: 'bell', iso: 'EUR', amount: '€2.50', count: 3 }] } },
    })
    await addMonths(app.db, 'events', daysBefore(clock.now(), 10), clock.now())
    await app.db.query(sql`
      insert into events (app_id, user_id, name, at, id, received_at)
      select ${app.tenant.id}, ${user.id}, 'rang', ${clock.now()}::timestamptz - n * interval '1 day', gen_random_uuid(), now()
      from generate_series(0, 9) n`)
    const filters = [
      { field: 'bought_sku', key: 'bell', relation: '>', value: '7' },
      { field: 'bought_sku', key: 'clapper', relation: '<', value: '7' },
      { field: 'event', name: 'rang', relation: '=', count: 3, within_days: 3 },
      { field: 'event', name: 'rang', relation: '>=', count: 10 },
    ]
    const id = await aSegment(app, filters)
    const { body } = await explained(id, 'onesignal_id', user.id)
    expect(
      body.subscriptions[0].clauses.map((it: { matches: boolean; value: unknown }) => [it.matches, it.value]),
    ).toEqual([
      [true, '7.50'],
      [false, null],
      [true, 3],
      [true, 10],
    ])
    const without = await aSegment(
      app,
      filters.filter((it) => it.key !== 'clapper'),
    )
    expect((await app.app(`/segments/${without}`)).body).toEqual({ subscriber_count: 1 })
  })

  test('of somebody who is not there, or without saying whom, is an error', async () => {
    const id = await aSegment(app, [tagIs('a', 'b')])
    expect(told(await explained(id, 'external_id', aName()))).toEqual(refused(404, 'User not found'))
    expect((await explained(id, 'onesignal_id', 'x')).status).toBe(400)
    expect((await app.app(`/segments/${id}/explain`)).status).toBe(400)
    expect(told(await explained(NOBODY, 'external_id', 'x'))).toEqual(refused(404, 'segment not found'))
  })
})

describe('estimate of recipients', () => {
  const estimate = (body: object) =>
    app.request('/notifications/count-unsaved', { body: { app_id: app.tenant.id, ...body } })
  const answer = (push: number, email: number, sms: number) => ({
    status: 200,
    body: {
      count: push + email + sms,
      uncapped_count: push + email + sms,
      cap_applied: false,
      mobile_suppressed: false,
      mobile_excluded_count: 0,
      by_channel: { push, email, sms },
    },
  })

  test('counts who is subscribed, by channel', async () => {
    const value = aName()
    const filters = [tagIs('crew', value)]
    const crew = (subscriptions: object[]) =>
      aUser(app, { properties: { tags: { crew: value } }, subscriptions: subscriptions as never })
    await crew([push(), email(), { type: 'SMS', token: aPhone() }])
    await crew([push(), push({ enabled: false }), push({ notification_types: -2 })])
    await crew([{ type: 'AndroidPush' }])
    expect(told(await estimate({ filters }))).toEqual(answer(2, 1, 1))
    expect(told(await estimate({ filters, target_channel: 'push' }))).toEqual(answer(2, 0, 0))
    expect(told(await estimate({ filters, target_channel: 'sms' }))).toEqual(answer(0, 0, 1))
  })

  test('segments are named; who is in several counts once, and excluded wins', async () => {
    const value = aName()
    const names = [aName(), aName(), aName()]
    await aSegment(app, [tagIs('a', value)], { name: names[0] })
    await aSegment(app, [tagIs('b', value)], { name: names[1] })
    await aSegment(app, [tagIs('c', value)], { name: names[2] })
    const user = (tags: object) => aUser(app, { properties: { tags }, subscriptions: [email()] })
    await user({ a: value })
    await user({ a: value, b: value })
    await user({ b: value, c: value })
    const included_segments = names.slice(0, 2)
    expect(told(await estimate({ included_segments }))).toEqual(answer(0, 3, 0))
    expect(told(await estimate({ included_segments, excluded_segments: [names[2]] }))).toEqual(answer(0, 2, 0))
    expect(told(await estimate({ included_segments, excluded_segments: ['Total Subscriptions'] }))).toEqual(
      answer(0, 0, 0),
    )
  })

  test('aliases need a channel', async () => {
    const first = await aUser(app, { subscriptions: [email(), push()] })
    const second = await aUser(app, { subscriptions: [email()] })
    const include_aliases = { external_id: [first.externalId, second.externalId, aName()], onesignal_id: [first.id] }
    expect(told(await estimate({ include_aliases, target_channel: 'email' }))).toEqual(answer(0, 2, 0))
    expect(told(await estimate({ include_aliases }))).toEqual({
      status: 400,
      body: { errors: ['include_aliases needs a target_channel: push, email or sms'] },
    })
  })

  test.each<[object, string]>([
    [{}, 'You must include which players, segments, or tags you wish to send this notification to.'],
    [{ included_segments: [] }, 'included_segments must not be empty'],
    [{ included_segments: ['Nobody here'] }, 'Segment "Nobody here" was not found'],
    [{ filters: [{ operator: 'OR' }] }, 'filters[0]: a list cannot begin with an operator'],
    [
      { included_segments: ['Active Users'], filters: [tagIs('a', 'b')] },
      'Only one of included_segments, filters and include_aliases can be given',
    ],
    [{ filters: [tagIs('a', 'b')], target_channel: 'fax' }, 'target_channel must be "push", "email" or "sms"'],
    [{ include_aliases: {}, target_channel: 'push' }, 'include_aliases must name at least one user'],
  ])('%j is refused', async (body, error) => {
    expect(told(await estimate(body))).toEqual({ status: 400, body: { errors: [error] } })
  })

  test('as many segments as a message may name, of as many filters as one may have, are refused and not an accident', async () => {
    const names = Array.from({ length: 50 }, () => aName())
    const place = { field: 'location', radius: '1', lat: '2', long: '3' }
    await Promise.all(names.map((name) => aSegment(app, Array(200).fill(place), { name })))
    const tooMany = { status: 400, body: { errors: ['The segments can have at most 5000 filters together'] } }
    expect(told(await estimate({ included_segments: names }))).toEqual(tooMany)
    expect(told(await estimate({ filters: [tagIs('a', 'b')], excluded_segments: names }))).toEqual(tooMany)
    // Named twice it is no more than once.
    expect((await estimate({ included_segments: Array(100).fill(names[0]) })).status).toBe(200)
  })

  test('segments of another app are not there', async () => {
    const stranger = await app.anotherTenant()
    const name = aName()
    await app.request(`/apps/${stranger.id}/segments`, {
      body: { name, filters: [tagIs('a', 'b')] },
      headers: { authorization: `Key ${stranger.key}` },
    })
    expect((await estimate({ included_segments: [name] })).body).toEqual({
      errors: [`Segment "${name}" was not found`],
    })
  })
})

test('who comes while others are counting waits for a turn, also for longer than a connection may take', async () => {
  const locked = Promise.withResolvers<void>()
  const busy = app.db.transaction(async (db) => {
    await db.query(sql`lock table subscriptions in access exclusive mode`)
    locked.resolve()
    await db.query(sql`select pg_sleep(3.2)`)
  })
  await locked.promise
  const body = { app_id: app.tenant.id, included_segments: ['Total Subscriptions'] }
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => app.request('/notifications/count-unsaved', { body })),
  )
  await busy
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200))
})

describe('hostile filters', () => {
  const preview = (filters: unknown) => app.app('/segments/preview', { body: { filters } })

  test.each([
    "'; drop table users; --",
    "x' or '1'='1",
    '$1',
    '\\',
    '%_',
    '"}}]',
    '{"a":1}',
    '漢字 🔔',
    '\u202e',
    '__proto__',
    'constructor',
  ])('%j is a text like any other, as key, value and name', async (text) => {
    const user = { properties: { tags: text === '__proto__' ? {} : { [text]: text } }, subscriptions: [email()] }
    await aUser(app, user)
    const { status, body } = await preview([tagIs(text, text)])
    expect({ status, count: body.subscriber_count }).toEqual({ status: 200, count: text === '__proto__' ? 0 : 1 })
    for (const filter of [
      { field: 'bought_sku', key: text, relation: '>', value: '0' },
      { field: 'event', name: text },
      { field: 'external_user_id', relation: '=', value: text },
      { field: 'app_version', relation: '=', value: text },
      tagIs(text, text, 'in_array'),
    ])
      expect(await preview([filter])).toMatchObject({
        status: 200,
        body: { subscriber_count: filter.relation === 'in_array' && text !== '__proto__' ? 1 : 0 },
      })
  })

  test('two hundred of the dearest are answered', async () => {
    const filters = Array.from({ length: 100 }, (_, i) => [
      { field: 'event', name: `e${i}`, within_days: 30 },
      { operator: 'OR' },
    ]).flat()
    expect((await preview(filters.slice(0, 199))).status).toBe(200)
  })

  test('depth and size have their limits', async () => {
    const nested = (levels: number): object => (levels === 0 ? tagIs('a', 'b') : { group: [nested(levels - 1)] })
    expect((await preview([nested(9)])).status).toBe(200)
    expect((await preview([nested(10)])).status).toBe(400)
    expect((await preview([nested(14)])).status).toBe(400)
    expect((await preview([nested(40)])).status).toBe(400)
    expect((await preview(Array.from({ length: 201 }, () => tagIs('a', 'b')))).status).toBe(400)
    expect((await preview([tagIs('a', 'x'.repeat(1_000_000))])).status).toBe(400)
  })
})

test('a count that takes too long is told as such, and not as a broken server', async () => {
  const slow = createPool({ connection: app.connection, size: 1, statementTimeoutMs: 30 })
  try {
    const counting = runCounting({ db: app.db, counting: unshared(slow) }, caller(), (db) =>
      db.query(sql`select pg_sleep(5)`),
    )
    await expect(counting).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/too long to count/),
    })
  } finally {
    await slow.close()
  }
})
