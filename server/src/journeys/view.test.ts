import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { runJobs } from '../../test/events.ts'
import {
  aJourney,
  aReadyJourney,
  aWait,
  create,
  everyKind,
  JOURNEY_NOT_FOUND,
  remove,
  someReferences,
  titles,
  update,
  view,
} from '../../test/journeys.ts'
import { anId, NOBODY, told } from '../../test/users.ts'
import { SYSTEM } from '../apps/app.ts'
import { issueKey } from '../apps/keys/keys.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'
import { sql } from '../storage/sql.ts'
import { branchesOf, type JourneyNode } from './nodes/kinds.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

/** Without the ids of nodes and branches. */
const bare = (nodes: JourneyNode[]): unknown[] =>
  nodes.map(({ id, ...node }) =>
    'branches' in node
      ? { ...node, branches: branchesOf({ id, ...node }).map(({ id, ...it }) => ({ ...it, nodes: bare(it.nodes) })) }
      : node,
  )

describe('view journey', () => {
  test('answers every field; a draft that has only a name has the defaults', async () => {
    const { body } = await create(app, { name: 'Welcome' })
    expect(told(await view(app, body.id))).toEqual({
      status: 200,
      body: {
        id: anId(),
        app_id: app.tenant.id,
        name: 'Welcome',
        description: '',
        state: 'draft',
        created_at: clock.now().toISOString(),
        updated_at: clock.now().toISOString(),
        started_at: null,
        archived_at: null,
        created_source: 'public_api',
        audience: {
          kind: 'segment',
          included_segment_ids: [],
          excluded_segment_ids: [],
          future_additions_only: false,
        },
        early_exit: null,
        reentry_rules: null,
        schedule: null,
        nodes: [],
        concurrency_key: expect.stringMatching(/^[\w-]{22}$/),
      },
    })
  })

  test('answers audience, schedule, lifecycle rules and nodes as they were given', async () => {
    const it = await someReferences(app)
    const fields = {
      name: 'Everything',
      description: 'All of it',
      audience: {
        kind: 'segment',
        included_segment_ids: [it.segmentId],
        excluded_segment_ids: [],
        future_additions_only: true,
      },
      early_exit: {
        rules: {
          on_segment: { included_segment_ids: [it.segmentId] },
          when_not_in_audience: true,
          on_session: true,
          on_event: { name: 'left' },
        },
        tag_on_early_exit: { left: 'yes', there: '' },
      },
      reentry_rules: { duration_seconds: 600 },
      schedule: { start_at: '2030-02-01T00:00:00.000Z', stop_at: '2030-03-01T00:00:00.000Z' },
    }
    const nodes = everyKind(it)
    const made = await create(app, { ...fields, nodes })
    expect(made.status).toBe(201)
    const { body } = await view(app, made.body.id)
    expect(body).toEqual(made.body)
    expect(body).toMatchObject(fields)
    expect(body.schedule).toEqual({ ...fields.schedule, error: null })
    expect(bare(body.nodes)).toEqual(nodes)
  })

  test('an event_trigger audience has a name and attributes', async () => {
    const audience = {
      kind: 'event_trigger',
      name: 'signed up',
      attributes: [
        [
          { key: 'plan', operator: 'is', value: 'gold' },
          { key: 'code', operator: 'exists' },
        ],
      ],
    }
    const { id } = await aJourney(app, { audience })
    expect((await view(app, id)).body.audience).toEqual(audience)
  })

  test('every node and every branch at any depth has an id of the server', async () => {
    const nested = (depth: number): object =>
      depth === 0
        ? aWait()
        : {
            kind: 'split_range',
            branches: [
              { weight: 50, nodes: [nested(depth - 1)] },
              { weight: 50, nodes: [aWait()] },
            ],
          }
    const { nodes } = await aJourney(app, { nodes: [nested(10)] })
    const ids: string[] = []
    const collect = (node: JourneyNode) => {
      ids.push(node.id)
      for (const branch of branchesOf(node)) {
        ids.push(branch.id)
        branch.nodes.forEach(collect)
      }
    }
    nodes.forEach(collect)
    expect(ids).toHaveLength(10 * 4 + 1)
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toEqual(anId())
  })

  test.each(['x', NOBODY, `${NOBODY}0`])('%s is a 404 journey-not-found', async (id) => {
    expect(told(await view(app, id))).toEqual(JOURNEY_NOT_FOUND)
    expect(told(await update(app, id, { name: 'x' }))).toEqual(JOURNEY_NOT_FOUND)
    expect(told(await remove(app, id))).toEqual(JOURNEY_NOT_FOUND)
    for (const path of ['stats', 'versions', 'versions/1'])
      expect(told(await app.app(`/journeys/${id}/${path}`))).toEqual(JOURNEY_NOT_FOUND)
    expect(told(await app.app(`/journeys/${id}/duplicate`, { method: 'POST' }))).toEqual(JOURNEY_NOT_FOUND)
  })

  test('a journey of another app is a 404, and an id is taken in any case', async () => {
    const { id } = await aJourney(app)
    expect((await view(app, id.toUpperCase())).body.id).toBe(id)
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    expect(told(await app.request(`/apps/${other.id}/journeys/${id}`, { headers }))).toEqual(JOURNEY_NOT_FOUND)
    expect((await app.request(`/apps/${app.tenant.id}/journeys/${id}`, { headers })).status).toBe(404)
  })
})

describe('permissions', () => {
  const keyWith = async (...permissions: Permission[]) => {
    const ctx = { db: app.db, clock }
    const { key } = await issueKey(ctx, { kind: 'app', appId: app.tenant.id }, { name: 'few', permissions }, SYSTEM)
    return { authorization: `Key ${key}` }
  }

  test('a key needs the permission to view journeys', async () => {
    const { id } = await aJourney(app)
    const may = await keyWith('journeys:view')
    const mayNot = await keyWith('journeys:edit', 'users', 'messages', 'segments', 'templates', 'apps')
    for (const path of ['/journeys', `/journeys/${id}`, `/journeys/${id}/stats`]) {
      expect((await app.app(path, { headers: may })).status).toBe(200)
      expect((await app.app(path, { headers: mayNot })).status).toBe(403)
    }
  })

  test('a key that may view may not edit', async () => {
    const { id } = await aJourney(app)
    const may = await keyWith('journeys:edit')
    const mayNot = await keyWith('journeys:view')
    const change = { method: 'PATCH', body: { name: 'Renamed' } }
    expect((await app.app(`/journeys/${id}`, { ...change, headers: mayNot })).status).toBe(403)
    expect((await app.app(`/journeys/${id}`, { ...change, headers: may })).status).toBe(200)
    expect((await create(app, {}, { headers: mayNot })).status).toBe(403)
    expect((await app.app(`/journeys/${id}`, { method: 'DELETE', headers: mayNot })).status).toBe(403)
    expect((await app.app(`/journeys/${id}`, { method: 'DELETE', headers: may })).status).toBe(200)
  })
})

describe('view journeys', () => {
  test('newest first, page by page, each once', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const made: string[] = []
    for (let n = 0; n < 5; n++) {
      const { body } = await app.request(`/apps/${other.id}/journeys`, { body: { name: `Journey ${n}` }, headers })
      made.unshift(body.id)
      // Two of the same moment as well.
      if (n !== 2) clock.advance({ seconds: 1 })
    }
    const list = (query: string) => app.request(`/apps/${other.id}/journeys?${query}`, { headers })
    const whole = (await list('')).body
    expect(whole).toEqual({ journeys: expect.any(Array), has_more: false })
    const ids = whole.journeys.map(({ id }: { id: string }) => id)
    expect([...ids].sort()).toEqual([...made].sort())
    expect([ids[0], ids[4]]).toEqual([made[0], made[4]])

    const paged: string[] = []
    let cursor: string | undefined
    for (let n = 0; n < 3; n++) {
      const { body } = await list(`limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      paged.push(...body.journeys.map(({ id }: { id: string }) => id))
      expect(body.has_more).toBe(n < 2)
      expect('next_cursor' in body).toBe(n < 2)
      cursor = body.next_cursor
    }
    expect(paged).toEqual(ids)
  })

  test('omits audience, schedule, lifecycle rules and nodes', async () => {
    const { id } = await aReadyJourney(app, { description: 'Long', reentry_rules: { duration_seconds: 600 } })
    const { body } = await app.app('/journeys?limit=50')
    const item = body.journeys.find((it: { id: string }) => it.id === id)
    const full = (await view(app, id)).body
    expect(Object.keys(item).sort()).toEqual(
      [
        'id',
        'app_id',
        'name',
        'state',
        'created_at',
        'updated_at',
        'started_at',
        'archived_at',
        'created_source',
      ].sort(),
    )
    expect(full).toMatchObject(item)
  })

  test.each(['limit=0', 'limit=51', 'limit=x', 'limit=1.5', 'cursor=x', 'cursor=', `cursor=${'a'.repeat(300)}`])(
    '%s is refused',
    async (query) => {
      const answer = await app.app(`/journeys?${query}`)
      expect(answer.status).toBe(400)
      expect(answer.body.errors[0]).toMatchObject({ code: 'request-0', title: expect.any(String) })
    },
  )
})

describe('delete journey', () => {
  test('answers success, in any state, with its versions and numbers; a second time is a 404', async () => {
    const { id } = await aReadyJourney(app)
    await update(app, id, { state: 'active' })
    await runJobs(app, clock)
    await app.db.query(sql`
      insert into journey_counts (app_id, journey_id, place_id, fact, part, count)
      values (${app.tenant.id}, ${id}, ${id}, 'started', 0, 3)`)
    expect(told(await remove(app, id))).toEqual({ status: 200, body: { success: true } })
    expect(told(await remove(app, id))).toEqual(JOURNEY_NOT_FOUND)
    await runJobs(app, clock)
    const left = await app.db.query(sql`
      select journey_id from journey_versions where app_id = ${app.tenant.id} and journey_id = ${id}
      union all select journey_id from journey_uses where app_id = ${app.tenant.id} and journey_id = ${id}
      union all select journey_id from journey_counts where app_id = ${app.tenant.id} and journey_id = ${id}`)
    expect(left).toEqual([])
  })

  test('many at once: one of them deletes', async () => {
    const { id } = await aJourney(app)
    const answers = await Promise.all(Array.from({ length: 6 }, () => remove(app, id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404])
  })
})

describe('stats', () => {
  test('name every node at any depth and every branch, with zeros', async () => {
    const it = await someReferences(app)
    const { id, nodes } = await aJourney(app, {
      nodes: [
        { kind: 'send_push', template_id: it.pushId },
        {
          kind: 'split_range',
          branches: [
            { weight: 50, nodes: [aWait()] },
            { weight: 50, nodes: [] },
          ],
        },
      ],
    })
    const [send, split] = nodes
    const inner = split.branches[0].nodes[0]
    const none = { waiting: 0, completed: 0, exited_early: 0 }
    expect(told(await app.app(`/journeys/${id}/stats`))).toEqual({
      status: 200,
      body: {
        id,
        started: 0,
        completed: 0,
        exited_early: 0,
        nodes: {
          [send.id]: { kind: 'send_push', ...none, message_stats: { totals: {} } },
          [split.id]: { kind: 'split_range', ...none },
          [inner.id]: { kind: 'wait', ...none },
        },
        branches: { [split.branches[0].id]: { completed: 0 }, [split.branches[1].id]: { completed: 0 } },
      },
    })
  })

  test('of send nodes add up the deliveries of all their messages, in the words in which a message tells them', async () => {
    const it = await someReferences(app)
    const { id, nodes } = await aJourney(app, {
      nodes: [
        { kind: 'send_push', template_id: it.pushId },
        { kind: 'send_email', template_id: it.emailId },
        { kind: 'send_sms', template_id: it.smsId },
      ],
    })
    const [push, email, sms] = nodes.map(({ id }: { id: string }) => id)
    const count = async (node: string, day: string, counts: Record<string, number>, platform = 'iOSPush') => {
      const messageId = newId()
      await app.db.query(sql`
        insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
        values (${app.tenant.id}, ${id}, ${node}, ${day}, ${it.pushId}, 1, ${messageId})`)
      for (const [name, number] of Object.entries(counts)) {
        const [state, reason = ''] = name.split(' ')
        for (const part of [0, 1])
          await app.db.query(sql`
            insert into message_counts (app_id, message_id, platform, state, reason, part, count)
            values (${app.tenant.id}, ${messageId}, ${platform}, ${state}, ${reason}, ${part}, ${number * (1 + part)})`)
      }
    }
    await count(push, '2030-01-01', { sent: 1, 'skipped unsubscribed': 2, received: 1, clicked: 1 })
    await count(push, '2030-01-02', { sent: 2, 'failed refused': 1, 'skipped frequency_cap': 1 }, 'AndroidPush')
    await count(email, '2030-01-01', { sent: 1, opens: 3, opened: 1, bounced: 1 }, 'Email')
    const { body } = await app.app(`/journeys/${id}/stats`)
    const totals = (node: string) => body.nodes[node].message_stats.totals
    const one = { successful: 9, failed: 6, errored: 3, converted: 3, received: 3 }
    expect(totals(push)).toEqual({ ...one, skipped: 3, frequency_capped: 3 })
    expect(totals(email)).toMatchObject({ successful: 3, opened: 9, unique_opens: 3, bounced: 3, reported_spam: 0 })
    expect(totals(sms)).toEqual({})
  })

  test('add up what was counted in parts', async () => {
    const it = await someReferences(app)
    const { id, nodes } = await aJourney(app, { nodes: [{ kind: 'send_push', template_id: it.pushId }] })
    const count = (place: string, fact: string, part: number, count: number) =>
      app.db.query(sql`
        insert into journey_counts (app_id, journey_id, place_id, fact, part, count)
        values (${app.tenant.id}, ${id}, ${place}, ${fact}, ${part}, ${count})`)
    await count(id, 'started', 0, 3)
    await count(id, 'started', 1, 4)
    await count(nodes[0].id, 'waiting', 0, 5)
    await count(nodes[0].id, 'waiting', 1, -2)
    await count(nodes[0].id, 'sent', 0, 9)
    expect((await app.app(`/journeys/${id}/stats`)).body).toEqual({
      id,
      started: 7,
      completed: 0,
      exited_early: 0,
      nodes: {
        [nodes[0].id]: {
          kind: 'send_push',
          waiting: 3,
          completed: 0,
          exited_early: 0,
          message_stats: { totals: { sent: 9 } },
        },
      },
      branches: {},
    })
  })
})

test('duplicate makes a draft of the same content with ids of its own and no schedule', async () => {
  const it = await someReferences(app)
  const nodes = [
    { kind: 'send_push', template_id: it.pushId, client_node_id: 'hello' },
    {
      kind: 'yes_no',
      branches: [
        { condition: { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }, nodes: [aWait()] },
        { nodes: [] },
      ],
    },
  ]
  const original = await aJourney(app, { name: 'First', schedule: { stop_at: '2031-01-01T00:00:00Z' }, nodes })
  const answer = await app.app(`/journeys/${original.id}/duplicate`, { method: 'POST' })
  expect(answer.status).toBe(201)
  const copy = answer.body
  expect(copy).toMatchObject({ name: 'Copy of First', state: 'draft', schedule: null, created_source: 'public_api' })
  expect(copy.id).not.toBe(original.id)
  expect(copy.nodes[0].id).not.toBe(original.nodes[0].id)
  expect(copy.nodes[1].branches[0].id).not.toBe(original.nodes[1].branches[0].id)
  expect(copy.nodes[1].branches[0].condition.sending_node_id).toBe(copy.nodes[0].id)
  expect((await view(app, copy.id)).body).toEqual(copy)

  const named = await app.app(`/journeys/${original.id}/duplicate`, { body: { name: 'Second' } })
  expect(named.body.name).toBe('Second')
  const refused = await app.app(`/journeys/${original.id}/duplicate`, { body: { name: 'x'.repeat(301) } })
  expect({ status: refused.status, titles: titles(refused) }).toEqual({
    status: 400,
    titles: ['name must have at most 300 characters'],
  })
  const long = await aJourney(app, { name: '🔔'.repeat(300) })
  const { body } = await app.app(`/journeys/${long.id}/duplicate`, { method: 'POST' })
  expect([...body.name]).toHaveLength(300)
})

test('versions tell who changed what, and what it was then', async () => {
  const { id } = await aJourney(app, { name: 'One' })
  clock.advance({ seconds: 1 })
  await update(app, id, { name: 'Two', description: 'More' })
  // Nothing is changed by what is so already.
  await update(app, id, { name: 'Two' })
  const { body } = await app.app(`/journeys/${id}/versions`)
  const changed_by = { kind: 'key', id: anId() }
  expect(body).toEqual({
    versions: [
      { version: 2, changed_at: clock.now().toISOString(), changed_by, fields: ['name', 'description'] },
      { version: 1, changed_at: expect.any(String), changed_by, fields: [] },
    ],
  })
  expect((await app.app(`/journeys/${id}/versions?before=2&limit=1`)).body.versions).toEqual([body.versions[1]])
  expect((await app.app(`/journeys/${id}/versions/1`)).body).toMatchObject({ version: 1, name: 'One', nodes: [] })
  for (const version of ['3', '0', 'x', '99999999999'])
    expect((await app.app(`/journeys/${id}/versions/${version}`)).body.errors[0].code).toBe('journey-version-not-found')
})

test('every change leaves a line in the audit log, with who did it', async () => {
  const { id } = await aJourney(app, { name: 'Audited' })
  clock.advance({ ms: 1 })
  await update(app, id, { name: 'Renamed' })
  clock.advance({ ms: 1 })
  const copy = await app.app(`/journeys/${id}/duplicate`, { method: 'POST' })
  await remove(app, id)
  const lines = (target: string) =>
    app.db.query(sql`
      select action, actor_kind, detail from audit_log
      where app_id = ${app.tenant.id} and target_type = 'journey' and target_id = ${target} order by at, id`)
  expect(await lines(id)).toEqual([
    { action: 'journey.create', actorKind: 'key', detail: { name: 'Audited', state: 'draft' } },
    { action: 'journey.update', actorKind: 'key', detail: { name: 'Renamed', state: 'draft', fields: ['name'] } },
    { action: 'journey.delete', actorKind: 'key', detail: { name: 'Renamed' } },
  ])
  expect(await lines(copy.body.id)).toEqual([
    {
      action: 'journey.duplicate',
      actorKind: 'key',
      detail: { name: 'Copy of Renamed', state: 'draft', from_journey_id: id },
    },
  ])
})
