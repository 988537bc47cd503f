import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aJourney,
  aReadyJourney,
  aWait,
  codes,
  everyKind,
  someReferences,
  titles,
  update,
  updateNode,
  view,
} from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { templatesOf } from '../../../test/templates.ts'
import { anId, NOBODY, told } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

describe('update journey', () => {
  test('fields that are given replace what is there, the others stay; updated_at moves', async () => {
    const before = await aReadyJourney(app, { description: 'Old', reentry_rules: { duration_seconds: 600 } })
    const { segmentId, ...shown } = before
    clock.advance({ seconds: 1 })
    const answer = await update(app, before.id, { name: 'New' })
    expect(told(answer)).toEqual({
      status: 200,
      body: {
        ...shown,
        name: 'New',
        updated_at: clock.now().toISOString(),
        concurrency_key: expect.not.stringMatching(before.concurrency_key),
      },
    })
    expect((await view(app, before.id)).body).toEqual(answer.body)
  })

  test('null clears description, schedule, early_exit and reentry_rules', async () => {
    const { id } = await aReadyJourney(app, {
      description: 'Old',
      schedule: { stop_at: '2031-01-01T00:00:00Z' },
      early_exit: { rules: { on_session: true } },
      reentry_rules: { duration_seconds: 600 },
    })
    const cleared = { schedule: null, early_exit: null, reentry_rules: null }
    expect((await update(app, id, { ...cleared, description: null })).body).toMatchObject({
      ...cleared,
      description: '',
    })
  })

  test.each(['name', 'audience', 'nodes'])('%s cannot be cleared', async (name) => {
    const before = await aReadyJourney(app)
    expect((await update(app, before.id, { [name]: null })).status).toBe(400)
    expect((await view(app, before.id)).body[name]).toEqual(before[name])
  })

  test('objects are merged, lists are replaced as a whole', async () => {
    const before = await aReadyJourney(app)
    const another = await aSegment(app, [tagIs('plan', 'gold')])
    const { body } = await update(app, before.id, { audience: { excluded_segment_ids: [another] } })
    expect(body.audience).toEqual({ ...before.audience, excluded_segment_ids: [another] })
    const replaced = await update(app, before.id, { audience: { excluded_segment_ids: [] } })
    expect(replaced.body.audience).toEqual(before.audience)
  })

  test('a rule of early_exit that is null drops just that rule; dropping the last one is refused', async () => {
    const { id } = await aJourney(app, {
      early_exit: { rules: { on_session: true, on_event: { name: 'left' } }, tag_on_early_exit: { a: '1', b: '2' } },
    })
    const { body } = await update(app, id, {
      early_exit: { rules: { on_session: null }, tag_on_early_exit: { a: null } },
    })
    expect(body.early_exit).toEqual({
      rules: { on_segment: null, when_not_in_audience: false, on_session: false, on_event: { name: 'left' } },
      tag_on_early_exit: { b: '2' },
    })
    const last = await update(app, id, { early_exit: { rules: { on_event: null } } })
    expect({ status: last.status, titles: titles(last) }).toEqual({
      status: 400,
      titles: ['early_exit.rules must have at least one rule; early_exit: null removes all of them'],
    })
    expect((await view(app, id)).body.early_exit).toEqual(body.early_exit)
  })

  test('the kind of the audience of a draft can change; what the new one does not know goes', async () => {
    const { id } = await aReadyJourney(app)
    const { body } = await update(app, id, { audience: { kind: 'event_trigger', name: 'signed up' } })
    expect(body.audience).toEqual({ kind: 'event_trigger', name: 'signed up', attributes: [] })
  })

  test('a refused update changes nothing', async () => {
    const before = await aReadyJourney(app)
    for (const body of [
      { name: 'x', nodes: [{ kind: 'nap' }] },
      { name: 'x', state: 'paused' },
      { name: 'x', state: 'archived' },
      { name: 'x', audience: { included_segment_ids: [newId()] } },
    ])
      expect((await update(app, before.id, body)).status).toBeGreaterThanOrEqual(400)
    const { segmentId, ...shown } = before
    expect((await view(app, before.id)).body).toEqual(shown)
  })

  test('read-only fields are refused, unless they say what is so', async () => {
    const { segmentId, ...before } = await aReadyJourney(app, { schedule: { stop_at: '2031-01-01T00:00:00Z' } })
    const echoed = await update(app, before.id, before)
    expect(told(echoed)).toEqual({ status: 200, body: before })
    const given = {
      id: NOBODY,
      app_id: NOBODY,
      created_at: '2030-01-01T09:00:00Z',
      updated_at: '2030-01-01T09:00:00Z',
      started_at: '2030-01-01T09:00:00Z',
      archived_at: '2030-01-01T09:00:00Z',
      created_source: 'dashboard',
    }
    const refused = await update(app, before.id, { ...given, schedule: { error: 'x' } })
    expect(refused.status).toBe(400)
    expect(titles(refused).sort()).toEqual(
      [...Object.keys(given), 'schedule.error'].map((name) => `${name} is read-only`).sort(),
    )
  })

  test('what lay ahead when it was saved need not lie ahead any more when it is sent back', async () => {
    const { id, schedule } = await aReadyJourney(app, {
      schedule: { stop_at: new Date(clock.now().getTime() + 1000).toISOString() },
    })
    clock.advance({ seconds: 2 })
    expect((await update(app, id, { name: 'Later', schedule })).status).toBe(200)
    expect(titles(await update(app, id, { schedule: { stop_at: '2030-01-01T09:00:00Z' } }))).toEqual([
      'schedule.stop_at must be in the future',
    ])
  })

  test('what went missing under a journey that names it keeps nobody from changing the rest', async () => {
    const it = await someReferences(app)
    const { id, nodes } = await aJourney(app, { nodes: [{ kind: 'send_push', template_id: it.pushId }] })
    await templatesOf(app).remove(it.pushId)
    expect((await update(app, id, { name: 'Still there', nodes })).status).toBe(200)
    expect(titles(await update(app, id, { nodes: [...nodes, { kind: 'send_sms', template_id: it.pushId }] }))).toEqual([
      'nodes[1].template_id names a template that is not there',
    ])
  })
})

describe('concurrency_key', () => {
  test('is opaque, changes with every edit, and not with what changes nothing', async () => {
    const { id, concurrency_key: first } = await aJourney(app)
    const { concurrency_key: second } = (await update(app, id, { name: 'New' })).body
    expect(second).not.toBe(first)
    expect((await update(app, id, { name: 'New' })).body.concurrency_key).toBe(second)
    expect((await update(app, id, {})).body.concurrency_key).toBe(second)
  })

  test('that is no longer current is a 409 journey-stale, and nothing changes', async () => {
    const { id, name, nodes, concurrency_key } = await aReadyJourney(app)
    expect((await update(app, id, { description: 'a', concurrency_key })).status).toBe(200)
    for (const key of [concurrency_key, 'x', '', 5, {}]) {
      for (const answer of [
        await update(app, id, { name: 'b', concurrency_key: key }),
        await updateNode(app, id, nodes[0].id, { annotation: 'b', concurrency_key: key }),
      ])
        expect({ status: answer.status, codes: codes(answer) }).toEqual({ status: 409, codes: ['journey-stale'] })
    }
    expect((await view(app, id)).body).toMatchObject({ name, description: 'a' })
  })

  test('that is left out or null is not checked', async () => {
    const { id } = await aJourney(app)
    expect((await update(app, id, { name: 'a' })).status).toBe(200)
    expect((await update(app, id, { name: 'b', concurrency_key: null })).status).toBe(200)
  })

  test('many with the same key at once, on two servers: one of them wins', async () => {
    const another = await testApp({ beside: app, clock })
    try {
      const { id, concurrency_key } = await aJourney(app)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) => update(n % 2 ? app : another, id, { name: `Name ${n}`, concurrency_key })),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)])
    } finally {
      await another.close()
    }
  })

  test('without a key, changes of different fields at once on two servers are all kept', async () => {
    const another = await testApp({ beside: app, clock })
    try {
      const { id } = await aReadyJourney(app)
      const changes = [
        { name: 'New' },
        { description: 'New' },
        { reentry_rules: { duration_seconds: 700 } },
        { schedule: { stop_at: '2031-01-01T00:00:00.000Z' } },
      ]
      const answers = await Promise.all(changes.map((change, n) => update(n % 2 ? app : another, id, change)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      expect((await view(app, id)).body).toMatchObject(Object.assign({}, ...changes))
    } finally {
      await another.close()
    }
  })
})

describe('nodes and branches', () => {
  test('that are sent back with their ids keep them, wherever they stand now; others are new', async () => {
    const it = await someReferences(app)
    const { id, nodes } = await aJourney(app, { nodes: everyKind(it) })
    const [first, ...rest] = nodes
    const split = rest.find(({ kind }: { kind: string }) => kind === 'split_range')
    const moved = { ...split, branches: split.branches.map((branch: object) => ({ ...branch, nodes: [first] })) }
    moved.branches[1] = { ...moved.branches[1], nodes: [aWait()] }
    const { status, body } = await update(app, id, { nodes: [moved, { ...rest[0], id: rest[0].id.toUpperCase() }] })
    expect(status).toBe(200)
    expect(body.nodes[0].id).toBe(split.id)
    expect(body.nodes[0].branches.map((branch: { id: string }) => branch.id)).toEqual(
      split.branches.map((branch: { id: string }) => branch.id),
    )
    expect(body.nodes[0].branches[0].nodes[0]).toEqual(first)
    expect(body.nodes[0].branches[1].nodes[0]).toEqual({ ...aWait(), id: anId() })
    expect(body.nodes[1]).toEqual(rest[0])
  })

  test('cannot change their kind under an id, stand there twice, or have an id of their own making', async () => {
    const { id, nodes } = await aJourney(app, { nodes: [aWait(), aWait()] })
    const [a, b] = nodes
    expect(titles(await update(app, id, { nodes: [{ id: a.id, kind: 'tag', assignments: { x: 'y' } }] }))).toEqual([
      'nodes[0].kind cannot change from wait to tag; leave out the id for a new node',
    ])
    expect(titles(await update(app, id, { nodes: [a, b, a] }))).toEqual(['nodes[2].id is there twice'])
    expect(titles(await update(app, id, { nodes: [{ ...a, id: NOBODY }] }))).toEqual([
      'nodes[0].id names no node of this journey; new nodes get their id from the server',
    ])
  })

  test('a branch belongs to its node', async () => {
    const split = { kind: 'split_range', branches: [{ weight: 50 }, { weight: 50 }] }
    const { id, nodes } = await aJourney(app, { nodes: [split, split] })
    const [a, b] = nodes
    expect(titles(await update(app, id, { nodes: [{ ...a, branches: b.branches }, b] }))).toEqual([
      'nodes[0].branches[0].id names no branch of this node; new branches get their id from the server',
      'nodes[0].branches[1].id names no branch of this node; new branches get their id from the server',
    ])
  })

  test('a condition cannot be about a message of a node that goes', async () => {
    const it = await someReferences(app)
    const clicked = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }
    const { id, nodes } = await aJourney(app, {
      nodes: [
        { kind: 'send_push', template_id: it.pushId, client_node_id: 'hello' },
        { kind: 'wait_until', branches: [{ condition: clicked, nodes: [] }] },
      ],
    })
    expect((await update(app, id, { nodes })).status).toBe(200)
    expect(titles(await update(app, id, { nodes: [nodes[1]] }))).toEqual([
      'nodes[0].branches[0].condition.sending_node_id names no node of this journey',
    ])
  })
})

describe('update journey node', () => {
  test('changes the given fields of one node at any depth, and answers the whole journey', async () => {
    const inner = { kind: 'split_range', branches: [{ weight: 50, nodes: [aWait()] }, { weight: 50 }] }
    const before = await aJourney(app, { nodes: [aWait(), inner] })
    const node = before.nodes[1].branches[0].nodes[0]
    clock.advance({ seconds: 1 })
    const { status, body } = await updateNode(app, before.id, node.id.toUpperCase(), { duration_seconds: 120 })
    expect(status).toBe(200)
    const expected = structuredClone(before)
    expected.nodes[1].branches[0].nodes[0].duration_seconds = 120
    expect(body).toEqual({
      ...expected,
      updated_at: clock.now().toISOString(),
      concurrency_key: expect.not.stringMatching(before.concurrency_key),
    })
    expect((await view(app, before.id)).body).toEqual(body)
  })

  test('expiration: null on wait_until waits for ever; null clears an annotation', async () => {
    const condition = { kind: 'event_trigger', name: 'x' }
    const { id, nodes } = await aJourney(app, {
      nodes: [
        {
          kind: 'wait_until',
          annotation: 'For now',
          branches: [{ condition, nodes: [] }],
          expiration: { duration_seconds: 60 },
        },
      ],
    })
    const { body } = await updateNode(app, id, nodes[0].id, { expiration: null, annotation: null })
    expect(body.nodes[0].expiration).toBeNull()
    expect(body.nodes[0]).not.toHaveProperty('annotation')
    const merged = await updateNode(app, id, nodes[0].id, { expiration: { duration_seconds: 90 } })
    expect(merged.body.nodes[0].expiration).toEqual({ duration_seconds: 90, exits: false })
  })

  test('branches are replaced as a whole, those that are echoed stay', async () => {
    const { id, nodes } = await aJourney(app, {
      nodes: [{ kind: 'split_range', branches: [{ weight: 50 }, { weight: 50 }] }],
    })
    const [kept] = nodes[0].branches
    const branches = [{ ...kept, weight: 40 }, { weight: 60 }]
    const { body } = await updateNode(app, id, nodes[0].id, { branches })
    expect(body.nodes[0].branches).toEqual([
      { ...kept, weight: 40 },
      { id: anId(), weight: 60, nodes: [] },
    ])
    expect(body.nodes[0].branches[1].id).not.toBe(nodes[0].branches[1].id)
  })

  test('kind and id stay; what is wrong is told with its place; concurrency_key is not merged', async () => {
    const { id, nodes, concurrency_key } = await aJourney(app, { nodes: [aWait(), aWait()] })
    const nodeId = nodes[1].id
    expect(titles(await updateNode(app, id, nodeId, { kind: 'tag', id: NOBODY }))).toEqual([
      'id of a node cannot be changed',
      'kind of a node cannot be changed',
    ])
    expect(titles(await updateNode(app, id, nodeId, { duration_seconds: 1 }))).toEqual([
      'nodes[1].duration_seconds must be from 60 to 31556952',
    ])
    const { status, body } = await updateNode(app, id, nodeId, {
      kind: 'wait',
      id: nodeId,
      annotation: 'x',
      concurrency_key,
    })
    expect(status).toBe(200)
    expect(body.nodes[1]).toEqual({ ...nodes[1], annotation: 'x' })
  })

  test.each([NOBODY, 'x'])('the node %s is a 404', async (nodeId) => {
    const { id } = await aJourney(app, { nodes: [aWait()] })
    const answer = await updateNode(app, id, nodeId, { annotation: 'x' })
    expect({ status: answer.status, codes: codes(answer) }).toEqual({ status: 404, codes: ['journey-node-not-found'] })
  })
})
