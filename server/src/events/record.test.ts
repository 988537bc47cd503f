import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { ACCEPTED, history, record, type Sent } from '../../test/events.ts'
import { aName, anId, aUser, NOBODY, problem, told } from '../../test/users.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-01-15T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())
beforeEach(() => clock.advance({ minutes: 1 }))

const refused = (index: number, user: string, code: string, title: string | RegExp, key: string | null = null) => ({
  event_user_id: user,
  event_id: key,
  error: { code, title: typeof title === 'string' ? title : expect.stringMatching(title), meta: { index } },
})
const times = async (user: { path: string }) => (await history(app, user)).map(({ timestamp }) => timestamp)
const names = async (user: { path: string }) => (await history(app, user)).map(({ name }) => name)

describe('an event', () => {
  test('is stored with its name, its time and its properties', async () => {
    const user = await aUser(app)
    const properties = { item: 'bell', price: 9.5, tags: ['a', null], deep: { é: true } }
    const timestamp = '2030-01-14T08:00:00.123Z'
    const sent = { name: 'purchase', external_id: user.externalId, timestamp, properties }
    expect(told(await record(app, [sent]))).toEqual(ACCEPTED)
    expect(await history(app, user)).toEqual([
      { id: anId(), name: 'purchase', timestamp, received_at: clock.now().toISOString(), properties },
    ])
  })

  test.each(['', '/api/v1'])('is taken on both paths, below %j', async (prefix) => {
    const user = await aUser(app)
    const events = [{ name: 'x', external_id: user.externalId }]
    for (const path of ['custom_events', 'integrations/custom_events'])
      expect(told(await app.request(`${prefix}/apps/${app.tenant.id}/${path}`, { body: { events } }))).toEqual(ACCEPTED)
    expect(await names(user)).toEqual(['x', 'x'])
  })

  test('may call its properties payload; properties count before it', async () => {
    const user = await aUser(app)
    const of = { external_id: user.externalId }
    await record(app, [{ ...of, payload: { a: 1 } }])
    clock.advance({ ms: 1 })
    await record(app, [{ ...of, properties: { b: 2 }, payload: { a: 1 } }])
    clock.advance({ ms: 1 })
    await record(app, [{ ...of, properties: null, payload: null }])
    expect((await history(app, user)).map(({ properties }) => properties)).toEqual([{}, { b: 2 }, { a: 1 }])
  })

  test('names its user by external_id, by onesignal_id in any case, or by both as SDKs do', async () => {
    const [user, other] = [await aUser(app), await aUser(app)]
    const answer = await record(app, [
      { name: 'a', external_id: user.externalId },
      { name: 'b', onesignal_id: user.id.toUpperCase(), external_id: null },
      { name: 'c', onesignal_id: user.id, external_id: user.externalId },
      { name: 'd', onesignal_id: user.id, external_id: other.externalId },
    ])
    expect(told(answer)).toEqual(ACCEPTED)
    expect((await names(user)).sort()).toEqual(['a', 'b', 'c', 'd'])
    expect(await names(other)).toEqual([])
  })

  test.each([
    ['no timestamp', undefined, '2030-02-01T12:00:00.000Z'],
    ['null', null, '2030-02-01T12:00:00.000Z'],
    ['a time in the future, which is now', '2030-02-01T12:00:00.001Z', '2030-02-01T12:00:00.000Z'],
    ['a time far in the future', '9999-12-31T23:59:59Z', '2030-02-01T12:00:00.000Z'],
    ['another zone', '2030-02-01T12:30:00+02:00', '2030-02-01T10:30:00.000Z'],
    ['microseconds', '2030-01-31T23:59:59.999999Z', '2030-01-31T23:59:59.999Z'],
    ['the oldest time that is taken', '2028-12-28T12:00:00Z', '2028-12-28T12:00:00.000Z'],
  ])('with %s', async (_, timestamp, stored) => {
    const user = await aUser(app)
    clock.advance({ ms: new Date('2030-02-01T12:00:00Z').getTime() - clock.now().getTime() })
    expect(told(await record(app, [{ external_id: user.externalId, timestamp }]))).toEqual(ACCEPTED)
    expect(await times(user)).toEqual([stored])
  })

  test('has a name of 1 to 128 characters', async () => {
    const user = await aUser(app)
    const name = `${'鐘'.repeat(127)}🔔`
    expect(told(await record(app, [{ name, external_id: user.externalId }]))).toEqual(ACCEPTED)
    expect(await names(user)).toEqual([name])
  })
})

describe('events that are not accepted, beside others that are', () => {
  test('those of unknown users', async () => {
    const user = await aUser(app)
    const tenant = await app.anotherTenant()
    const made = await app.request(`/apps/${tenant.id}/users`, {
      headers: { authorization: `Key ${tenant.key}` },
      body: { identity: { external_id: 'theirs' } },
    })
    const theirs = made.body.identity.onesignal_id
    const key = newId()
    const answer = await record(app, [
      { external_id: 'nobody', idempotency_key: key.toUpperCase() },
      { external_id: user.externalId },
      { onesignal_id: NOBODY },
      { external_id: 'theirs' },
      { onesignal_id: theirs },
    ])
    expect(told(answer)).toEqual({
      status: 202,
      body: {
        errors: [
          refused(0, 'nobody', 'not found', 'User not found', key),
          refused(2, NOBODY, 'not found', 'User not found'),
          refused(3, 'theirs', 'not found', 'User not found'),
          refused(4, theirs, 'not found', 'User not found'),
        ],
      },
    })
    expect(await names(user)).toEqual(['bell rung'])
    const seen = await app.request(`/apps/${tenant.id}/users/by/external_id/theirs/custom_events`, {
      headers: { authorization: `Key ${tenant.key}` },
    })
    expect(seen.body).toEqual({ events: [], next_cursor: null })
  })

  test.each([
    ['ASCII', 'x'],
    ['two bytes each', 'é'],
    ['four bytes each', '🔔'],
  ])('those of more than 2,024 bytes of UTF-8: %s', async (_, letter) => {
    const user = await aUser(app)
    const event = (bytes: number) => {
      const bare = { name: 'large', external_id: user.externalId, properties: { text: '' } }
      const room = bytes - Buffer.byteLength(JSON.stringify(bare))
      const size = Buffer.byteLength(letter)
      const text = letter.repeat(Math.floor(room / size)) + '.'.repeat(room % size)
      return { ...bare, properties: { text } }
    }
    const answer = await record(app, [event(2_024), event(2_025), { external_id: user.externalId }])
    const title = 'The event has 2025 bytes; at most 2024 are taken'
    expect(told(answer)).toEqual({
      status: 202,
      body: { errors: [refused(1, user.externalId, 'too large', title)] },
    })
    const seen = await history(app, user)
    expect(seen.map(({ name }) => name).sort()).toEqual(['bell rung', 'large'])
    expect(seen.map(({ properties }) => properties)).toContainEqual(event(2_024).properties)
  })

  test('what counts is the event without spaces, with all that it brought', async () => {
    const { externalId } = await aUser(app)
    const wide = JSON.stringify({ events: [{ name: 'a', external_id: externalId }] }, null, 2_000)
    expect(told(await app.app('/custom_events', { raw: wide }))).toEqual(ACCEPTED)
    const answer = await record(app, [{ external_id: externalId, unknown_field: 'x'.repeat(2_024) }])
    expect(answer.body.errors).toMatchObject([{ error: { code: 'too large' } }])
  })

  test('those from before the retention', async () => {
    const user = await aUser(app)
    const oldest = clock.now().getTime() - 400 * 86_400_000
    const at = (ms: number) => ({ external_id: user.externalId, timestamp: new Date(ms).toISOString() })
    const answer = await record(app, [at(oldest - 1), at(oldest), at(0)])
    const title = `Events from before ${new Date(oldest).toISOString()} are not taken`
    expect(told(answer)).toEqual({
      status: 202,
      body: { errors: [0, 2].map((index) => refused(index, user.externalId, 'too old', title)) },
    })
    expect(await times(user)).toEqual([new Date(oldest).toISOString()])
  })

  test('all of them, and nothing is stored', async () => {
    const answer = await record(app, [{ external_id: 'nobody' }])
    expect(answer.body.errors).toHaveLength(1)
  })
})

describe('a request', () => {
  const field = (name: string) => ({ field: name })
  const of = { external_id: 'x' }
  test.each<[string, unknown, string, Record<string, string>]>([
    ['no body', undefined, 'The body must be an object', field('The body')],
    ['no events', {}, 'events is required', field('events')],
    ['events that are no list', { events: {} }, 'events must be a list', field('events')],
    ['an empty list', { events: [] }, 'events must not be empty', field('events')],
    ['an event that is none', { events: [5] }, 'events[0] must be an object', field('events[0]')],
    ['no name', { events: [of] }, 'events[0].name is required', field('events[0].name')],
    ['an empty name', { events: [{ ...of, name: '' }] }, 'events[0].name must not be empty', field('events[0].name')],
    [
      'a long name',
      { events: [{ ...of, name: '🔔'.repeat(129) }] },
      'events[0].name must have at most 128 characters',
      field('events[0].name'),
    ],
    [
      'no user',
      { events: [{ name: 'a', ...of }, { name: 'b' }] },
      'events[1] needs an external_id or a onesignal_id',
      field('events[1]'),
    ],
    [
      'an empty external_id',
      { events: [{ name: 'a', external_id: '' }] },
      'events[0].external_id must not be empty',
      field('events[0].external_id'),
    ],
    [
      'a onesignal_id that is none',
      { events: [{ name: 'a', onesignal_id: 'x' }] },
      'events[0].onesignal_id must be a UUID',
      field('events[0].onesignal_id'),
    ],
    [
      'a key that is none',
      { events: [{ name: 'a', ...of, idempotency_key: `urn:uuid:${NOBODY}` }] },
      'events[0].idempotency_key must be a UUID',
      field('events[0].idempotency_key'),
    ],
    [
      'a key of the request that is none',
      { events: [{ name: 'a', ...of }], idempotency_key: 'x' },
      'idempotency_key must be a UUID',
      field('idempotency_key'),
    ],
    ...['yesterday', '2030-02-30T00:00:00Z', '2030-01-01', '2030-01-01T00:00:00', '2016-12-31T23:59:60Z'].map(
      (timestamp): [string, unknown, string, Record<string, string>] => [
        `the timestamp ${timestamp}`,
        { events: [{ name: 'a', ...of, timestamp }] },
        'events[0].timestamp must be an ISO 8601 date and time',
        field('events[0].timestamp'),
      ],
    ),
    [
      'a timestamp that is a number',
      { events: [{ name: 'a', ...of, timestamp: 1_900_000_000 }] },
      'events[0].timestamp must be a string or null',
      field('events[0].timestamp'),
    ],
    [
      'properties that are a list',
      { events: [{ name: 'a', ...of, properties: [] }] },
      'events[0].properties must be an object or null',
      field('events[0].properties'),
    ],
    [
      'payload that is text',
      { events: [{ name: 'a', ...of, payload: '{}' }] },
      'events[0].payload must be an object or null',
      field('events[0].payload'),
    ],
  ])('with %s is refused', async (_, body, title, meta) => {
    const answer = await app.app('/custom_events', { method: 'POST', ...(body !== undefined && { body }) })
    expect(told(answer)).toEqual(problem(400, 'request-0', title, meta))
  })

  test('that is refused stores nothing', async () => {
    const user = await aUser(app)
    expect((await record(app, [{ external_id: user.externalId }, { name: '' }])).status).toBe(400)
    expect(await names(user)).toEqual([])
  })

  test('with text that cannot be stored is refused', async () => {
    for (const text of ['\\u0000', '\\ud800'])
      for (const event of [`{"name":"${text}","external_id":"x"}`, `{"name":"a","properties":{"${text}":1}}`]) {
        const answer = await app.app('/custom_events', { raw: `{"events":[${event}]}` })
        expect(answer.status).toBe(400)
      }
  })

  test('holds at most 10,000 events', async () => {
    const user = await aUser(app)
    const many = (count: number) => Array.from({ length: count }, () => ({ name: 'x', external_id: user.externalId }))
    expect(told(await record(app, many(10_001)))).toEqual(
      problem(400, 'request-0', 'events must have at most 10000 items', field('events')),
    )
    expect(told(await record(app, many(10_000)))).toEqual(ACCEPTED)
    const [row] = await app.db.query<{ n: number }>({
      text: 'select count(*) as n from events where user_id = $1',
      values: [user.id],
    })
    expect(row?.n).toBe(10_000)
  })

  test('holds at most 1 MB, with any number of keys', async () => {
    const { externalId } = await aUser(app)
    const event = {
      name: 'keys',
      external_id: externalId,
      properties: Object.fromEntries(Array.from({ length: 190 }, (_, n) => [`k${n}`, n])),
    }
    const body = JSON.stringify({ events: Array(500).fill(event) })
    expect(body.length).toBeGreaterThan(900_000)
    expect(told(await app.app('/custom_events', { raw: body.padEnd(1_048_576) }))).toEqual(ACCEPTED)
    expect((await app.app('/custom_events', { raw: body.padEnd(1_048_577) })).status).toBe(413)
  })

  test('is answered for itself when many come at once', async () => {
    const users = await Promise.all(Array.from({ length: 40 }, () => aUser(app)))
    const answers = await Promise.all(
      users.map((user, n) =>
        record(app, [
          { name: `mine ${n}`, external_id: user.externalId },
          ...(n % 2 === 0 ? [{ external_id: `nobody ${n}` }] : []),
          { name: `also ${n}`, onesignal_id: user.id },
        ]),
      ),
    )
    for (const [n, answer] of answers.entries()) {
      const errors = [refused(1, `nobody ${n}`, 'not found', 'User not found')]
      expect(told(answer)).toEqual({ status: 202, body: n % 2 === 0 ? { errors } : {} })
      expect((await names(users[n] as { path: string })).sort()).toEqual([`also ${n}`, `mine ${n}`])
    }
  })
})

test('large requests that come at once are each answered for themselves', async () => {
  const users = await Promise.all(Array.from({ length: 5 }, () => aUser(app)))
  const answers = await Promise.all(
    users.map((user, n) => {
      const events: Sent[] = Array.from({ length: 2_400 }, () => ({ external_id: user.externalId }))
      return record(app, events.with(n * 500, { external_id: `nobody ${n}` }))
    }),
  )
  for (const [n, answer] of answers.entries())
    expect(answer.body).toEqual({ errors: [refused(n * 500, `nobody ${n}`, 'not found', 'User not found')] })
  const stored = await app.db.query<{ n: number }>({
    text: 'select count(*) as n from events where user_id = any($1) group by user_id',
    values: [users.map(({ id }) => id)],
  })
  expect(stored).toEqual(Array(5).fill({ n: 2_399 }))
})

describe('SDKs without a key', () => {
  const SDK = { 'sdk-version': 'onesignal/android/050400', accept: 'application/vnd.onesignal.v1+json' }
  const send = (events: Sent[]) =>
    app.app('/custom_events', {
      headers: { ...SDK, authorization: '' },
      body: { events: events.map((event) => ({ name: 'sdk', ...event })) },
    })

  test('send events of the user whose id they know', async () => {
    const user = await aUser(app)
    const answer = await send([
      { onesignal_id: user.id, external_id: user.externalId, payload: { os_sdk: { type: 'AndroidPush' } } },
    ])
    expect(told(answer)).toEqual(ACCEPTED)
    expect(await history(app, user)).toMatchObject([{ properties: { os_sdk: { type: 'AndroidPush' } } }])
  })

  test('cannot name a user by external_id alone', async () => {
    const user = await aUser(app)
    const answer = await send([{ onesignal_id: user.id }, { external_id: user.externalId }])
    expect(told(answer)).toEqual(problem(401, 'auth-1', "This operation requires 'Authorization' in the HTTP header"))
    expect(await names(user)).toEqual([])
  })

  test('cannot read them', async () => {
    const user = await aUser(app)
    const answer = await app.app(`${user.path}/custom_events`, { headers: { ...SDK, authorization: '' } })
    expect(answer.status).toBe(401)
  })
})

test('an external_id is compared to the letter', async () => {
  const external_id = aName('Ä 漢/"\\')
  const user = await aUser(app, { identity: { external_id } })
  expect(told(await record(app, [{ external_id }]))).toEqual(ACCEPTED)
  const other = await record(app, [{ external_id: external_id.normalize('NFD') }])
  expect(other.body.errors).toHaveLength(1)
  expect(await names(user)).toEqual(['bell rung'])
})
