import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { aSegment, DEFAULT_NAMES, namesOf, refused, tagIs, viewSegment } from '../../test/segments.ts'
import { aName, anEmail, anId, aUser, NOBODY, told, view } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { sql } from '../storage/sql.ts'

const clock = virtualClock('2030-01-01T09:00:00.500Z')
let app: TestApp
let other: Tenant
beforeAll(async () => {
  app = await testApp({ clock })
  other = await app.anotherTenant()
})
afterAll(() => app.close())

const FILTERS = [tagIs('plan', 'gold')]
const NAME_TAKEN = 'Segment name is already taken.'
const NOT_FOUND = refused(404, 'segment not found')
const READ_ONLY = refused(400, 'Default segments cannot be changed or deleted.')
const remove = (id: string) => app.app(`/segments/${id}`, { method: 'DELETE' })
const update = (id: string, body: object) => app.app(`/segments/${id}`, { method: 'PATCH', body })
const ofOther = (path: string, init: object = {}) =>
  app.request(`/apps/${other.id}${path}`, { ...init, headers: { authorization: `Key ${other.key}` } })
const auditOf = (id: string) =>
  app.db.query<{ action: string; actorKind: string; actorIp: string; detail: object }>(sql`
    select action, actor_kind, actor_ip, detail from audit_log
    where app_id = ${app.tenant.id} and target_id = ${id} and target_type = 'segment'
    order by at, action`)

describe('create segment', () => {
  test('answers 201 with success and an id, and is then there', async () => {
    const name = aName('segment')
    const answer = await app.app('/segments', { body: { name, description: 'who pays', filters: FILTERS } })
    expect(told(answer)).toEqual({ status: 201, body: { success: true, id: anId() } })
    expect(await viewSegment(app, answer.body.id)).toEqual({
      subscriber_count: 0,
      payload: {
        id: answer.body.id,
        name,
        description: 'who pays',
        created_at: Math.floor(clock.now().getTime() / 1000),
        source: 'custom',
        filters: FILTERS,
      },
    })
  })

  test('takes an id of the caller, in any case', async () => {
    const id = newId()
    expect(await aSegment(app, FILTERS, { id: id.toUpperCase() })).toBe(id)
    expect(told(await app.app('/segments', { body: { id, name: aName(), filters: FILTERS } }))).toEqual(
      refused(409, 'Segment id is already taken.'),
    )
    // Ids are the app's own.
    expect((await ofOther('/segments', { body: { id, name: aName(), filters: FILTERS } })).status).toBe(201)
  })

  test('a name is unique in its app, to the letter', async () => {
    const name = aName('Ünique 🔔')
    await aSegment(app, FILTERS, { name })
    expect(told(await app.app('/segments', { body: { name, filters: FILTERS } }))).toEqual(refused(409, NAME_TAKEN))
    await aSegment(app, FILTERS, { name: name.toUpperCase() })
    expect((await ofOther('/segments', { body: { name, filters: FILTERS } })).status).toBe(201)
  })

  test('many at once with one name make one', async () => {
    const name = aName()
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => app.app('/segments', { body: { name, filters: FILTERS } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(409)])
  })

  test.each<[string, object, string]>([
    ['no name', { filters: FILTERS }, 'name is required'],
    ['an empty name', { name: '', filters: FILTERS }, 'name must not be empty'],
    ['a long name', { name: 'x'.repeat(129), filters: FILTERS }, 'name must have at most 128 characters'],
    [
      'a long description',
      { name: 'x', description: '🔔'.repeat(256), filters: FILTERS },
      'description must have at most 255 characters',
    ],
    ['no filters', { name: 'x' }, 'filters is required'],
    ['filters of another type', { name: 'x', filters: {} }, 'filters must be a list'],
    ['filters that are empty', { name: 'x', filters: [] }, 'filters: must have at least one filter'],
    ['a filter that is none', { name: 'x', filters: [...FILTERS, 5] }, 'filters[1] must be an object'],
    [
      'a bad filter',
      { name: 'x', filters: [...FILTERS, { field: 'mood', relation: '=', value: 'x' }] },
      'filters[1]: unknown field "mood"',
    ],
    ['an id that is none', { name: 'x', id: 'x', filters: FILTERS }, 'id must be a UUID'],
  ])('%s is refused, and nothing is made', async (_, body, error) => {
    const before = (await app.app('/segments')).body.total_count
    expect(told(await app.app('/segments', { body }))).toEqual(refused(400, error))
    expect((await app.app('/segments')).body.total_count).toBe(before)
  })

  test('128 characters and a description of 255 are accepted', async () => {
    const id = await aSegment(app, FILTERS, { name: '🔔'.repeat(128), description: '🔔'.repeat(255) })
    expect((await viewSegment(app, id)).payload).toMatchObject({
      name: '🔔'.repeat(128),
      description: '🔔'.repeat(255),
    })
  })

  test('text that cannot be stored is refused', async () => {
    const raw = `{"name":"x","filters":[{"field":"tag","key":"a\\u0000","relation":"exists"}]}`
    expect((await app.app('/segments', { raw })).status).toBe(400)
  })
})

describe('view segments', () => {
  test('lists in the order they were made, the default ones first', async () => {
    const tenant = await app.anotherTenant()
    const mine = (path: string, init: object = {}) =>
      app.request(`/apps/${tenant.id}${path}`, { ...init, headers: { authorization: `Key ${tenant.key}` } })
    const made: string[] = []
    for (let i = 0; i < 4; i++) {
      clock.advance({ seconds: 1 })
      made.push(aName())
      await mine('/segments', { body: { name: made[i], filters: FILTERS } })
    }
    const all = await mine('/segments')
    expect(all).toMatchObject({ status: 200, body: { total_count: 9, offset: 0, limit: 300 } })
    expect(namesOf(all)).toEqual([...DEFAULT_NAMES, ...made])
    expect(all.body.segments[8]).toEqual({
      id: anId(),
      name: made[3],
      description: null,
      created_at: clock.now().toISOString(),
      updated_at: clock.now().toISOString(),
      app_id: tenant.id,
      read_only: false,
      is_active: true,
    })
    expect(all.body.segments[0]).toMatchObject({ read_only: true, is_active: true, app_id: tenant.id })
    const paged: string[] = []
    for (let offset = 0; offset < 9; offset += 2) {
      const page = await mine(`/segments?limit=2&offset=${offset}`)
      expect(page.body).toMatchObject({ total_count: 9, offset, limit: 2 })
      paged.push(...namesOf(page))
    }
    expect(paged).toEqual(namesOf(all))
    expect((await mine('/segments?offset=100')).body).toMatchObject({ total_count: 9, segments: [] })
  })

  test.each(['limit=0', 'limit=301', 'limit=x', 'offset=-1', 'limit=1.5'])('%s is a 400', async (query) => {
    const { status, body } = await app.app(`/segments?${query}`)
    expect({ status, body }).toMatchObject({ status: 400, body: { success: false, errors: [expect.any(String)] } })
  })
})

describe('view segment', () => {
  test('counts the subscriptions in it, and tells what it is only when asked', async () => {
    const value = aName()
    const subscriptions = [
      { type: 'Email', token: anEmail() },
      { type: 'iOSPush', token: aName(), enabled: false },
    ]
    await aUser(app, { properties: { tags: { group: value } }, subscriptions })
    await aUser(app, { properties: { tags: { group: value } } })
    await aUser(app, { properties: { tags: { group: 'none' } }, subscriptions: [{ type: 'Email', token: anEmail() }] })
    const id = await aSegment(app, [tagIs('group', value)])
    expect((await app.app(`/segments/${id}`)).body).toEqual({ subscriber_count: 2 })
    expect((await app.app(`/segments/${id}?include-segment-detail=false`)).body).toEqual({ subscriber_count: 2 })
    const onSubscriptions = await aSegment(app, [
      tagIs('group', value),
      { field: 'subscribed', relation: '=', value: 'true' },
    ])
    expect((await app.app(`/segments/${onSubscriptions}`)).body).toEqual({ subscriber_count: 1 })
  })

  test('is up to date with what was just written', async () => {
    const value = aName()
    const id = await aSegment(app, [tagIs('fresh', value)])
    const user = await aUser(app, { subscriptions: [{ type: 'Email', token: anEmail() }] })
    await app.app(user.path, { method: 'PATCH', body: { properties: { tags: { fresh: value } } } })
    expect((await app.app(`/segments/${id}`)).body).toEqual({ subscriber_count: 1 })
  })

  test('filters read back as they were given, and can be given again', async () => {
    const filters = [
      { field: 'tag', key: "a'b", relation: '>', value: 5 },
      { operator: 'OR' },
      {
        group: [
          { field: 'location', radius: 100.5, lat: '1', long: 2 },
          { operator: 'AND' },
          { field: 'event', name: 'ключ' },
        ],
      },
    ]
    const { payload } = await viewSegment(app, await aSegment(app, filters))
    expect(payload.filters).toEqual(filters)
    expect((await viewSegment(app, await aSegment(app, payload.filters))).payload.filters).toEqual(filters)
  })

  test.each([NOBODY, 'x', "' or 1=1"])('%s is not there', async (id) => {
    expect(told(await app.app(`/segments/${encodeURIComponent(id)}`))).toEqual(NOT_FOUND)
  })

  test('does not see those of another app', async () => {
    const { body } = await ofOther('/segments', { body: { name: aName(), filters: FILTERS } })
    expect(told(await app.app(`/segments/${body.id}`))).toEqual(NOT_FOUND)
    expect(told(await update(body.id, { name: aName() }))).toEqual(NOT_FOUND)
    expect(told(await remove(body.id))).toEqual({ status: 404, body: { success: false } })
    expect((await ofOther(`/segments/${body.id}`)).status).toBe(200)
  })

  test('counts no user of another app', async () => {
    const value = aName()
    await ofOther('/users', {
      body: {
        identity: { external_id: aName() },
        properties: { tags: { a: value } },
        subscriptions: [{ type: 'Email', token: anEmail() }],
      },
    })
    const id = await aSegment(app, [tagIs('a', value)])
    expect((await app.app(`/segments/${id}`)).body).toEqual({ subscriber_count: 0 })
  })
})

describe('update segment', () => {
  test('changes the name, and what else is given', async () => {
    const id = await aSegment(app, FILTERS, { description: 'before' })
    clock.advance({ minutes: 1 })
    const name = aName()
    expect(told(await update(id, { name }))).toEqual({ status: 200, body: { success: true, id } })
    expect((await viewSegment(app, id)).payload).toMatchObject({ name, description: 'before', filters: FILTERS })
    const filters = [{ field: 'country', relation: '=', value: 'DE' }]
    await update(id, { name, description: '', filters })
    expect((await viewSegment(app, id)).payload).toMatchObject({ name, description: null, filters })
    const { body } = await app.app('/segments')
    const item = body.segments.find((it: { id: string }) => it.id === id)
    expect(item.updated_at).toBe(clock.now().toISOString())
    expect(item.created_at < item.updated_at).toBe(true)
  })

  test('the name is always required', async () => {
    const id = await aSegment(app, FILTERS)
    expect(told(await update(id, { filters: FILTERS }))).toEqual(refused(400, 'name is required'))
  })

  test('a name that another one has is a 400, its own is not', async () => {
    const [name, other] = [aName(), aName()]
    const id = await aSegment(app, FILTERS, { name })
    await aSegment(app, FILTERS, { name: other })
    expect(told(await update(id, { name: other }))).toEqual(refused(400, NAME_TAKEN))
    expect(told(await update(id, { name: 'Active Users' }))).toEqual(refused(400, NAME_TAKEN))
    expect((await viewSegment(app, id)).payload.name).toBe(name)
    expect((await update(id, { name })).status).toBe(200)
  })

  test('filters that are empty or wrong are a 400, and nothing changes', async () => {
    const id = await aSegment(app, FILTERS)
    const before = await viewSegment(app, id)
    expect(told(await update(id, { name: aName(), filters: [] }))).toEqual(
      refused(400, 'filters: must have at least one filter'),
    )
    expect(told(await update(id, { name: aName(), filters: [{ operator: 'OR' }] }))).toEqual(
      refused(400, 'filters[0]: a list cannot begin with an operator'),
    )
    expect(await viewSegment(app, id)).toEqual(before)
  })

  test.each([NOBODY, 'x'])('%s is not there', async (id) => {
    expect(told(await update(id, { name: aName() }))).toEqual(NOT_FOUND)
  })
})

describe('delete segment', () => {
  test('answers 200 with success, and it is gone', async () => {
    const id = await aSegment(app, FILTERS)
    expect(told(await remove(id.toUpperCase()))).toEqual({ status: 200, body: { success: true } })
    expect(told(await app.app(`/segments/${id}`))).toEqual(NOT_FOUND)
  })

  test('a second delete is a 404 that says success false and nothing else', async () => {
    const id = await aSegment(app, FILTERS)
    await remove(id)
    expect(told(await remove(id))).toEqual({ status: 404, body: { success: false } })
    expect(told(await remove(NOBODY))).toEqual({ status: 404, body: { success: false } })
    expect(told(await remove('no-id'))).toEqual({ status: 404, body: { success: false } })
  })

  test('of many at once exactly one deletes it', async () => {
    const id = await aSegment(app, FILTERS)
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(404)])
    expect(await auditOf(id)).toHaveLength(2)
  })

  test('users and subscriptions are not deleted, nor changed', async () => {
    const value = aName()
    const user = await aUser(app, {
      properties: { tags: { club: value } },
      subscriptions: [{ type: 'Email', token: anEmail() }],
    })
    const before = await view(app, user)
    const id = await aSegment(app, [tagIs('club', value)])
    expect((await app.app(`/segments/${id}`)).body).toEqual({ subscriber_count: 1 })
    await remove(id)
    expect(await view(app, user)).toEqual(before)
  })

  test('cannot be undone: its id and name are free, and a new one is another', async () => {
    const name = aName()
    const id = await aSegment(app, FILTERS, { name })
    await remove(id)
    const filters = [{ field: 'country', relation: 'exists' }]
    await aSegment(app, filters, { id, name })
    expect((await viewSegment(app, id)).payload.filters).toEqual(filters)
  })

  test('works with Content-Type and without, with an empty body', async () => {
    for (const headers of [{}, { 'content-type': 'application/json' }] as Record<string, string>[]) {
      const id = await aSegment(app, FILTERS)
      expect((await app.app(`/segments/${id}`, { method: 'DELETE', headers })).status).toBe(200)
    }
  })

  test('an app that is not theirs is a 400 with a reference, as one that is not there', async () => {
    const id = await aSegment(app, FILTERS)
    const asked = (appId: string) =>
      app.request(`/apps/${appId}/segments/${id}`, { method: 'DELETE', headers: { authorization: `Key ${other.key}` } })
    const answer = told(await asked(app.tenant.id))
    expect(answer).toEqual({
      status: 400,
      body: {
        success: false,
        errors: ['app_id not found. You may be missing a Content-Type: application/json header.'],
        reference: [expect.stringMatching(/^\/docs/)],
      },
    })
    expect(told(await asked(NOBODY))).toEqual(answer)
    expect((await app.app(`/segments/${id}`)).status).toBe(200)
  })
})

describe('default segments', () => {
  test('All is everybody, until the app has a segment of that name', async () => {
    const { id, key } = await app.anotherTenant()
    const headers = { authorization: `Key ${key}` }
    for (const plan of ['gold', 'none']) {
      const subscriptions = [{ type: 'Email', token: anEmail() }]
      await app.request(`/apps/${id}/users`, { headers, body: { properties: { tags: { plan } }, subscriptions } })
    }
    const count = async (included_segments: string[]) => {
      const body = { app_id: id, included_segments, target_channel: 'email' }
      return (await app.request('/notifications/count-unsaved', { headers, body })).body.count
    }
    for (const name of ['All', 'Subscribed Users', 'Total Subscriptions']) expect(await count([name])).toBe(2)
    await app.request(`/apps/${id}/segments`, { headers, body: { name: 'All', filters: FILTERS } })
    expect([await count(['All']), await count(['Total Subscriptions'])]).toEqual([1, 2])
  })

  const defaults = async () =>
    (await app.app('/segments?limit=5')).body.segments as { id: string; name: string; read_only: boolean }[]

  test('are in every app by name, each with an id of its own that stays', async () => {
    const mine = await defaults()
    expect(mine.map(({ name }) => name)).toEqual(DEFAULT_NAMES)
    expect(mine).toMatchObject(Array(5).fill({ id: anId(), read_only: true }))
    expect(await defaults()).toEqual(mine)
    const theirs = (await ofOther('/segments?limit=5')).body.segments as { id: string }[]
    expect(new Set([...mine, ...theirs].map(({ id }) => id)).size).toBe(10)
  })

  test('can be viewed, with filters that can be given again', async () => {
    for (const { id, name } of await defaults()) {
      const { payload, subscriber_count } = await viewSegment(app, id)
      expect(payload).toMatchObject({ id, name, source: 'default', description: null })
      const copy = await aSegment(app, payload.filters)
      expect((await app.app(`/segments/${copy}`)).body).toEqual({ subscriber_count })
    }
  })

  test('cannot be changed or deleted, and their names and ids are taken', async () => {
    for (const { id, name } of await defaults()) {
      expect(told(await update(id, { name: aName() }))).toEqual(READ_ONLY)
      expect(told(await remove(id))).toEqual(READ_ONLY)
      expect(told(await app.app('/segments', { body: { name, filters: FILTERS } }))).toEqual(refused(409, NAME_TAKEN))
      expect(told(await app.app('/segments', { body: { id, name: aName(), filters: FILTERS } }))).toEqual(
        refused(409, 'Segment id is already taken.'),
      )
    }
    expect((await defaults()).map(({ name }) => name)).toEqual(DEFAULT_NAMES)
  })

  test('mean what their names say', async () => {
    const tenant = await app.anotherTenant()
    const mine = (path: string, init: object = {}) =>
      app.request(`/apps/${tenant.id}${path}`, { ...init, headers: { authorization: `Key ${tenant.key}` } })
    const make = async (subscription: object) => {
      const { body } = await mine('/users', {
        body: { subscriptions: [{ type: 'Email', token: anEmail(), ...subscription }] },
      })
      return body
    }
    await make({})
    clock.advance({ days: 8 })
    await make({ enabled: false })
    await make({ session_count: 5 })
    const { body } = await mine('/segments')
    const counts: Record<string, number> = {}
    for (const { id, name } of body.segments) counts[name] = (await mine(`/segments/${id}`)).body.subscriber_count
    expect(counts).toEqual({
      'Subscribed Users': 2,
      'Active Users': 2,
      'Engaged Users': 1,
      'Inactive Users': 1,
      'Total Subscriptions': 3,
    })
  })
})

test('every change is in the audit log, with who made it', async () => {
  const name = aName()
  const id = await aSegment(app, FILTERS, { name })
  clock.advance({ seconds: 1 })
  await update(id, { name: `${name} 2`, filters: [{ field: 'country', relation: 'exists' }] })
  clock.advance({ seconds: 1 })
  await remove(id)
  const who = { actorKind: 'key', actorIp: '127.0.0.1' }
  expect(await auditOf(id)).toEqual([
    { action: 'segment.create', ...who, detail: { name } },
    { action: 'segment.update', ...who, detail: { name: `${name} 2`, changed: ['name', 'filters'] } },
    { action: 'segment.delete', ...who, detail: { name: `${name} 2` } },
  ])
})
