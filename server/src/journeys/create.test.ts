import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import {
  aJourney,
  aWait,
  create,
  everyKind,
  type References,
  someReferences,
  titles,
  view,
} from '../../test/journeys.ts'
import { anId, NOBODY } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { defaultSegments } from '../segments/segment.ts'

let app: TestApp
let it: References
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
  it = await someReferences(app)
})
afterAll(() => app.close())

type Fields = Record<string, unknown>

/** All that is wrong with a journey, and nothing of it is kept. */
async function problemsOf(fields: Fields): Promise<string[]> {
  const answer = await create(app, fields)
  expect(answer.status).toBe(400)
  for (const { code, meta } of answer.body.errors)
    expect({ code, meta }).toEqual({ code: 'request-0', meta: { field: expect.any(String) } })
  return titles(answer)
}
const problemsOfNode = (node: unknown) => problemsOf({ nodes: [node] })

const split = (...weights: unknown[]) => ({
  kind: 'split_range',
  branches: weights.map((weight) => ({ weight, nodes: [] })),
})
const member = (fields: Fields = {}) => ({
  kind: 'segment_membership',
  included_segment_ids: [it.segmentId],
  ...fields,
})
const yesNo = (condition: unknown, second: Fields = {}) => ({
  kind: 'yes_no',
  branches: [
    { condition, nodes: [] },
    { nodes: [], ...second },
  ],
})
const waitUntil = (fields: Fields, ...conditions: unknown[]) => ({
  kind: 'wait_until',
  branches: conditions.map((condition) => ({ condition, nodes: [] })),
  ...fields,
})

describe('create journey', () => {
  test('makes a draft; its created_source records the origin', async () => {
    const { status, body } = await create(app, { name: 'Welcome' })
    expect(status).toBe(201)
    expect(body).toMatchObject({ id: anId(), state: 'draft', created_source: 'public_api', started_at: null })
  })

  test.each([
    [{ name: undefined }, 'name is required'],
    [{ name: null }, 'name is required'],
    [{ name: '' }, 'name must not be empty'],
    [{ name: ' ' }, 'name must not be empty'],
    [{ name: 5 }, 'name must be a string'],
    [{ name: 'x'.repeat(301) }, 'name must have at most 300 characters'],
    [{ description: 'x'.repeat(1025) }, 'description must have at most 1024 characters'],
    [{ description: 5 }, 'description must be a string'],
    [{ nodes: {} }, 'nodes must be a list'],
    [{ nodes: [5] }, 'nodes[0] must be an object'],
    [{ early_exit: 5 }, 'early_exit must be an object'],
    [{ reentry_rules: { duration_seconds: 599 } }, 'reentry_rules.duration_seconds must be from 600 to 315569520'],
    [{ reentry_rules: {} }, 'reentry_rules.duration_seconds is required'],
    [{ reentry_rules: { duration_seconds: '600' } }, 'reentry_rules.duration_seconds must be an integer'],
  ])('%j is refused', async (fields, expected) => {
    expect(await problemsOf(fields)).toEqual([expected])
  })

  test('a name of 300 characters and a description of 1,024, whatever they are, are taken', async () => {
    const fields = { name: '🔔'.repeat(300), description: '🔔'.repeat(1024) }
    expect(await aJourney(app, fields)).toMatchObject(fields)
  })

  test('a description that is null or left out is an empty string', async () => {
    expect((await aJourney(app, { description: null })).description).toBe('')
  })

  test('fields that the server sets are refused, unknown ones are dropped', async () => {
    const given = {
      id: NOBODY,
      app_id: NOBODY,
      state: 'active',
      created_at: '2030-01-01T09:00:00Z',
      updated_at: '2030-01-01T09:00:00Z',
      started_at: '2030-01-01T09:00:00Z',
      archived_at: '2030-01-01T09:00:00Z',
      created_source: 'dashboard',
      concurrency_key: 'x',
    }
    const problems = await problemsOf({ ...given, schedule: { stop_at: '2031-01-01T00:00:00Z', error: 'x' } })
    expect(problems.map((title) => title.split(' ')[0]).sort()).toEqual(
      [...Object.keys(given), 'schedule.error'].sort(),
    )
    const made = await aJourney(app, { colour: 'red', nodes: [aWait({ colour: 'red', template_id: NOBODY })] })
    expect(made).not.toHaveProperty('colour')
    expect(made.nodes).toEqual([{ id: anId(), ...aWait() }])
  })

  test('ids of nodes and branches are refused', async () => {
    const branches = [
      { id: newId(), weight: 100, nodes: [] },
      { weight: 0, nodes: [] },
    ]
    expect(await problemsOf({ nodes: [aWait({ id: newId() }), { kind: 'split_range', branches }] })).toEqual([
      'nodes[0].id names no node of this journey; new nodes get their id from the server',
      'nodes[1].branches[0].id names no branch of this node; new branches get their id from the server',
    ])
  })

  test('a body that is no object, or that is missing, is refused', async () => {
    for (const raw of ['[]', '5', 'null', ''])
      expect((await app.app('/journeys', { raw, headers: { 'content-type': 'application/json' } })).status).toBe(400)
  })
})

describe('validation', () => {
  test('tells every problem at once, each with its place', async () => {
    const missing = newId()
    expect(
      await problemsOf({
        name: '',
        description: 5,
        audience: { kind: 'segment', included_segment_ids: ['x', missing] },
        early_exit: { rules: { on_session: false } },
        reentry_rules: { duration_seconds: 1 },
        schedule: { start_at: '2030-01-01T09:04:59Z', stop_at: '2029-01-01T00:00:00Z' },
        nodes: [
          aWait(),
          { kind: 'send_push', template_id: missing },
          {
            kind: 'yes_no',
            branches: [
              {
                condition: member({ included_segment_ids: [missing] }),
                nodes: [aWait(), { kind: 'wait', duration_seconds: 59 }, { kind: 'nap' }],
              },
              { nodes: [{ kind: 'tag', assignments: { plan: 5, name: '{{ x', fine: '{{ y }}', other: '{% if %}' } }] },
            ],
          },
        ],
      }),
    ).toEqual([
      'name must not be empty',
      'description must be a string',
      'audience.included_segment_ids[0] must be a UUID',
      'early_exit.rules must have at least one rule; early_exit: null removes all of them',
      'reentry_rules.duration_seconds must be from 600 to 315569520',
      'schedule.start_at must be at least 5 minutes ahead',
      'schedule.stop_at must be in the future',
      'schedule.stop_at must be after schedule.start_at',
      'nodes[2].branches[0].nodes[1].duration_seconds must be from 60 to 31556952',
      'nodes[2].branches[0].nodes[2].kind must be one of wait, time_window, send_push, send_email, send_sms, send_iam, send_webhook, tag, split_range, yes_no, wait_until',
      'nodes[2].branches[1].nodes[0].assignments.plan must be a string',
      expect.stringMatching(
        /^nodes\[2\].branches\[1\].nodes\[0\].assignments.name has Liquid that cannot be read: line 1/,
      ),
      expect.stringMatching(
        /^nodes\[2\].branches\[1\].nodes\[0\].assignments.other has Liquid that cannot be read: line 1/,
      ),
      'audience.included_segment_ids[1] names a segment that is not there',
      'nodes[1].template_id names a template that is not there',
      'nodes[2].branches[0].condition.included_segment_ids[0] names a segment that is not there',
    ])
  })

  test('what is refused leaves nothing behind', async () => {
    const other = await app.anotherTenant()
    const headers = { authorization: `Key ${other.key}` }
    const body = { name: 'x', nodes: [{ kind: 'send_push', template_id: it.pushId }] }
    expect((await app.request(`/apps/${other.id}/journeys`, { body, headers })).status).toBe(400)
    expect((await app.request(`/apps/${other.id}/journeys`, { headers })).body.journeys).toEqual([])
  })

  test('at most a hundred problems are told', async () => {
    expect(await problemsOf({ nodes: Array.from({ length: 300 }, () => ({ kind: 'wait' })) })).toHaveLength(100)
  })

  test('500 nodes are taken, 501 are not; ten branching nodes lie inside each other, eleven do not', async () => {
    const many = (count: number) => Array.from({ length: count }, () => aWait())
    expect((await aJourney(app, { nodes: many(500) })).nodes).toHaveLength(500)
    expect(await problemsOf({ nodes: many(501) })).toEqual([
      'nodes[500] is one node too many; a journey has at most 500',
    ])
    const nested = (depth: number): object =>
      depth === 0
        ? aWait()
        : { ...yesNo(member()), branches: [{ condition: member(), nodes: [nested(depth - 1)] }, { nodes: [] }] }
    expect((await create(app, { nodes: [nested(10)] })).status).toBe(201)
    expect(await problemsOf({ nodes: [nested(11)] })).toEqual([
      expect.stringMatching(/is nested deeper than 10 branching nodes$/),
    ])
  })

  test('lists and objects lie at most 64 deep in each other', async () => {
    const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) })
    expect((await create(app, { colour: nested(62) })).status).toBe(201)
    expect(await titles(await create(app, { colour: nested(63) }))).toEqual([
      'The body is nested deeper than 64 levels',
    ])
  })

  test('every segment, template, webhook and in-app message must be there, and templates of the right channel', async () => {
    const missing = newId()
    const nodes = [
      { kind: 'send_push', template_id: it.emailId },
      { kind: 'send_email', template_id: it.smsId },
      { kind: 'send_sms', template_id: it.pushId },
      { kind: 'send_email', template_id: missing },
      { kind: 'send_iam', iam_id: missing },
      { kind: 'send_webhook', webhook_id: missing },
    ]
    const early_exit = { rules: { on_segment: { included_segment_ids: [missing] } } }
    expect(await problemsOf({ nodes, early_exit })).toEqual([
      'early_exit.rules.on_segment.included_segment_ids[0] names a segment that is not there',
      'nodes[0].template_id must name a template for push; this one is for email',
      'nodes[1].template_id must name a template for email; this one is for sms',
      'nodes[2].template_id must name a template for sms; this one is for push',
      'nodes[3].template_id names a template that is not there',
      'nodes[4].iam_id names an in-app message that is not there',
      'nodes[5].webhook_id names a journey webhook that is not there',
    ])
  })

  test('default segments are there, and ids are taken in any case', async () => {
    const [first] = defaultSegments(app.tenant.id, new Date(0))
    const audience = {
      kind: 'segment',
      included_segment_ids: [first?.id, it.segmentId.toUpperCase(), it.segmentId],
      excluded_segment_ids: [],
    }
    const { audience: read } = await aJourney(app, { audience })
    expect(read.included_segment_ids).toEqual([first?.id, it.segmentId])
  })
})

describe('audience', () => {
  test.each([
    [5, 'audience must be an object'],
    [{}, 'audience.kind is required'],
    [{ kind: 'all' }, 'audience.kind must be one of segment, event_trigger'],
    [{ kind: 'segment', included_segment_ids: 'x' }, 'audience.included_segment_ids must be a list'],
    [{ kind: 'segment', future_additions_only: 1 }, 'audience.future_additions_only must be true or false'],
    [{ kind: 'event_trigger' }, 'audience.name is required'],
    [{ kind: 'event_trigger', name: 'x'.repeat(256) }, 'audience.name must have at most 255 characters'],
    [{ kind: 'event_trigger', name: 'x', attributes: [[], []] }, /^audience\.attributes must have one group at most/],
    [
      { kind: 'event_trigger', name: 'x', attributes: [[{ operator: 'is', value: 'y' }]] },
      'audience.attributes[0][0].key is required',
    ],
    [
      { kind: 'event_trigger', name: 'x', attributes: [[{ key: 'a', operator: 'is' }]] },
      'audience.attributes[0][0].value is required',
    ],
    [
      { kind: 'event_trigger', name: 'x', attributes: [[{ key: 'a', operator: 'like', value: 'y' }]] },
      /^audience\.attributes\[0\]\[0\]\.operator must be one of equal, /,
    ],
    [
      { kind: 'event_trigger', name: 'x', attributes: [[{ key: 'a', operator: 'less', value: 'y' }]] },
      'audience.attributes[0][0].value must be a number for less',
    ],
    [
      { kind: 'event_trigger', name: 'x', attributes: [[{ key: 'a', operator: 'before', value: 'y' }]] },
      'audience.attributes[0][0].value must be an ISO 8601 date, or date and time, for before',
    ],
  ])('%j is refused', async (audience, expected) => {
    const [first] = await problemsOf({ audience })
    if (typeof expected === 'string') expect(first).toBe(expected)
    else expect(first).toMatch(expected)
  })

  test('re-entry rules are for segment audiences', async () => {
    const audience = { kind: 'event_trigger', name: 'x' }
    expect(await problemsOf({ audience, reentry_rules: { duration_seconds: 600 } })).toEqual([
      'reentry_rules is for segment audiences: a journey that events trigger can always be entered again',
    ])
  })
})

describe('early exit', () => {
  test.each([
    [{}, 'early_exit.rules is required'],
    [{ rules: {} }, /^early_exit\.rules must have at least one rule/],
    [{ rules: { colour: true } }, /^early_exit\.rules must have at least one rule/],
    [{ rules: { on_session: null, on_event: null } }, /^early_exit\.rules must have at least one rule/],
    [{ rules: { on_session: 'yes' } }, 'early_exit.rules.on_session must be true or false'],
    [{ rules: { on_event: {} } }, 'early_exit.rules.on_event.name is required'],
    [
      { rules: { on_segment: { included_segment_ids: [] } } },
      'early_exit.rules.on_segment.included_segment_ids must name at least one segment',
    ],
    [
      { rules: { on_session: true }, tag_on_early_exit: { k: 'x'.repeat(1025) } },
      'early_exit.tag_on_early_exit.k must have at most 1024 characters',
    ],
  ])('%j is refused', async (early_exit, expected) => {
    const problems = await problemsOf({ early_exit })
    expect(problems).toEqual([typeof expected === 'string' ? expected : expect.stringMatching(expected)])
  })

  test('a rule that is null is not set', async () => {
    const { early_exit } = await aJourney(app, { early_exit: { rules: { on_session: true, on_event: null } } })
    expect(early_exit).toEqual({
      rules: { on_segment: null, when_not_in_audience: false, on_session: true, on_event: null },
      tag_on_early_exit: {},
    })
  })
})

describe('schedule', () => {
  test.each([
    [{ start_at: 'tomorrow' }, 'schedule.start_at must be an ISO 8601 date and time'],
    [{ start_at: '2030-02-30T00:00:00Z' }, 'schedule.start_at must be an ISO 8601 date and time'],
    [{ start_at: '2030-02-03T25:00:00Z' }, 'schedule.start_at must be an ISO 8601 date and time'],
    [{ start_at: '2030-01-02' }, 'schedule.start_at must be an ISO 8601 date and time'],
    [{ start_at: '2030-01-01T09:04:59.999Z' }, 'schedule.start_at must be at least 5 minutes ahead'],
    [{ stop_at: '2030-01-01T09:00:00.000Z' }, 'schedule.stop_at must be in the future'],
    [
      { start_at: '2030-02-01T00:00:00Z', stop_at: '2030-02-01T00:00:00Z' },
      'schedule.stop_at must be after schedule.start_at',
    ],
  ])('%j is refused', async (schedule, expected) => {
    expect(await problemsOf({ schedule })).toEqual([expected])
  })

  test('a start exactly five minutes ahead is taken, in any zone, and answered in UTC', async () => {
    const { schedule } = await aJourney(app, { schedule: { start_at: '2030-01-01T10:05:00+01:00' } })
    expect(schedule).toEqual({ start_at: '2030-01-01T09:05:00.000Z', stop_at: null, error: null })
  })
})

describe('nodes', () => {
  test.each([
    [{ kind: 'wait' }, 'nodes[0].duration_seconds is required'],
    [{ kind: 'wait', duration_seconds: 59 }, 'nodes[0].duration_seconds must be from 60 to 31556952'],
    [{ kind: 'wait', duration_seconds: 31556953 }, 'nodes[0].duration_seconds must be from 60 to 31556952'],
    [{ kind: 'wait', duration_seconds: 60.5 }, 'nodes[0].duration_seconds must be an integer'],
    [{ kind: 'send_push' }, 'nodes[0].template_id is required'],
    [{ kind: 'send_email', template_id: 'x' }, 'nodes[0].template_id must be a UUID'],
    [{ kind: 'send_iam' }, 'nodes[0].iam_id is required'],
    [{ kind: 'send_webhook' }, 'nodes[0].webhook_id is required'],
    [{ kind: 'tag' }, 'nodes[0].assignments is required'],
    [{ kind: 'tag', assignments: {} }, 'nodes[0].assignments must have 1 to 100 tags'],
    [
      { kind: 'tag', assignments: { ['k'.repeat(256)]: 'x' } },
      'a key of nodes[0].assignments must have at most 255 characters',
    ],
    [{ kind: 'tag', assignments: { k: 'x'.repeat(1025) } }, 'nodes[0].assignments.k must have at most 1024 characters'],
    [aWait({ annotation: 'x'.repeat(256) }), 'nodes[0].annotation must have at most 255 characters'],
    [aWait({ client_node_id: 5 }), 'nodes[0].client_node_id must be a string'],
    [{ kind: 'time_window' }, 'nodes[0].relative_to is required'],
    [{ kind: 'time_window', relative_to: 'schedule_in_timezone' }, 'nodes[0].windows is required'],
    [
      { kind: 'time_window', relative_to: 'schedule_in_timezone', windows: [] },
      'nodes[0].windows must have 1 to 100 items',
    ],
    [split(50, 49), 'nodes[0].branches must have weights that sum to 100, not 99'],
    [split(100), 'nodes[0].branches must have 2 to 20 items'],
    [split(50, undefined), 'nodes[0].branches[1].weight is required'],
    [split('50', 50), 'nodes[0].branches[0].weight must be a number'],
    [split(-50, 150), 'nodes[0].branches[0].weight must be from 0 to 100, with two decimals at most'],
    [{ kind: 'split_range' }, 'nodes[0].branches is required'],
    [{ kind: 'yes_no', branches: [{ nodes: [] }] }, 'nodes[0].branches must have exactly 2 items'],
    [yesNo(undefined), 'nodes[0].branches[0].condition is required'],
    [yesNo({ kind: 'mood' }), /^nodes\[0\]\.branches\[0\]\.condition\.kind must be one of segment_membership/],
    [yesNo({ kind: 'segment_membership' }), 'nodes[0].branches[0].condition must name at least one segment'],
    [
      yesNo({ kind: 'on_notification_action', action: 'clicked' }),
      'nodes[0].branches[0].condition must have sending_node_id or client_node_id, and one of them only',
    ],
    [{ kind: 'wait_until', branches: [] }, 'nodes[0].branches must have 1 to 10 items'],
    [waitUntil({}, undefined), 'nodes[0].branches[0].condition is required'],
    [
      waitUntil({ expiration: { exits: true } }, { kind: 'event_trigger', name: 'x' }),
      'nodes[0].expiration.duration_seconds is required',
    ],
    [
      waitUntil({ expiration: { duration_seconds: 59 } }, { kind: 'event_trigger', name: 'x' }),
      'nodes[0].expiration.duration_seconds must be from 60 to 31556952',
    ],
  ])('%j is refused', async (node, expected) => {
    const [first] = await problemsOfNode(node)
    if (typeof expected === 'string') expect(first).toBe(expected)
    else expect(first).toMatch(expected)
  })

  const window = (start: object, end: object, more: Fields = {}) => ({
    kind: 'time_window',
    relative_to: 'schedule_in_timezone',
    windows: [{ start, end }],
    ...more,
  })
  test.each([
    [window({ hour: 24 }, { hour: 9 }), 'nodes[0].windows[0].start.hour must be from 0 to 23'],
    [window({ hour: 9, minute: 60 }, { hour: 10 }), 'nodes[0].windows[0].start.minute must be from 0 to 59'],
    [window({ hour: 9 }, { hour: 9, minute: 14 }), 'nodes[0].windows[0] must be at least 15 minutes long'],
    [window({ hour: 9 }, { hour: 10 }, { time_zone: 'Mars/Olympus' }), /^nodes\[0\]\.time_zone must be the name/],
    [
      window({ hour: 9 }, { hour: 10 }, { relative_to: 'last_active_time' }),
      'nodes[0].windows must be left out for last_active_time',
    ],
  ])('%j is refused', async (node, expected) => {
    const problems = await problemsOfNode(node)
    expect(problems).toEqual([typeof expected === 'string' ? expected : expect.stringMatching(expected)])
  })

  test('a window that ends when it begins is a whole day', async () => {
    const midnight = { hour: 0, minute: 0 }
    const { nodes } = await aJourney(app, { nodes: [window(midnight, midnight)] })
    expect(nodes[0].windows).toEqual([{ start: midnight, end: midnight }])
  })

  test('the second branch of yes_no has no condition, and wait_until one on messages at most', async () => {
    expect(await problemsOfNode(yesNo(member(), { condition: member() }))).toEqual([
      'nodes[0].branches[1].condition must be left out: the second branch is the way of all others',
    ])
    const clicked = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }
    const sent = { kind: 'send_push', template_id: it.pushId, client_node_id: 'hello' }
    expect(await problemsOf({ nodes: [sent, waitUntil({}, clicked, { ...clicked, action: 'opened' })] })).toEqual([
      'nodes[1].branches must have one condition of the kind on_notification_action at most',
    ])
  })

  test('have defaults', async () => {
    const { nodes } = await aJourney(app, {
      nodes: [
        window({ hour: 9 }, { hour: 10 }),
        { kind: 'time_window', relative_to: 'last_active_time' },
        { kind: 'send_iam', iam_id: it.iamId },
        split(33.3, 33.3, 33.4),
        waitUntil({}, { kind: 'event_trigger', name: 'bought' }),
        waitUntil({ expiration: { duration_seconds: 60 } }, { kind: 'event_trigger', name: 'bought' }),
      ],
    })
    const id = anId()
    const branch = {
      id,
      condition: { kind: 'event_trigger', name: 'bought', attributes: [], entry_event_match_attributes: [] },
      nodes: [],
    }
    expect(nodes).toEqual([
      {
        id,
        ...window({ hour: 9, minute: 0 }, { hour: 10, minute: 0 }),
        time_zone: 'UTC',
        use_user_time_zone: false,
      },
      { id, kind: 'time_window', relative_to: 'last_active_time' },
      { id, kind: 'send_iam', iam_id: it.iamId, user_ttl_seconds: null },
      {
        id,
        kind: 'split_range',
        randomize_on_entry: false,
        branches: [33.3, 33.3, 33.4].map((weight) => ({ id, weight, nodes: [] })),
      },
      { id, kind: 'wait_until', branches: [branch], expiration: null },
      { id, kind: 'wait_until', branches: [branch], expiration: { duration_seconds: 60, exits: false } },
    ])
  })

  test('client_node_id is stored and returned, and unique in the journey', async () => {
    const { id } = await aJourney(app, { nodes: [aWait({ client_node_id: 'first' })] })
    expect((await view(app, id)).body.nodes[0].client_node_id).toBe('first')
    const inner = {
      ...yesNo(member()),
      branches: [{ condition: member(), nodes: [aWait({ client_node_id: 'a' })] }, { nodes: [] }],
    }
    expect(await problemsOf({ nodes: [aWait({ client_node_id: 'a' }), inner] })).toEqual([
      'nodes[1].branches[0].nodes[0].client_node_id is there twice',
    ])
  })

  test('client_node_id refers to a node that has no id yet, before or after it, and is answered as its id', async () => {
    const clicked = (name: string) => ({ kind: 'on_notification_action', action: 'clicked', client_node_id: name })
    const { nodes } = await aJourney(app, {
      nodes: [yesNo(clicked('hello')), { kind: 'send_push', template_id: it.pushId, client_node_id: 'hello' }],
    })
    expect(nodes[0].branches[0].condition).toEqual({
      kind: 'on_notification_action',
      action: 'clicked',
      sending_node_id: nodes[1].id,
    })
    expect(await problemsOfNode(yesNo(clicked('nobody')))).toEqual([
      'nodes[0].branches[0].condition.client_node_id names no node of this journey',
    ])
    expect(await problemsOf({ nodes: [aWait({ client_node_id: 'nap' }), yesNo(clicked('nap'))] })).toEqual([
      'nodes[1].branches[0].condition.client_node_id must name a node that sends push, email or SMS',
    ])
  })

  test('entry_event_match_attributes is for journeys that an event triggers', async () => {
    const condition = { kind: 'event_trigger', name: 'x', entry_event_match_attributes: [{ key: 'order' }] }
    expect(await problemsOfNode(waitUntil({}, condition))).toEqual([
      'nodes[0].branches[0].condition.entry_event_match_attributes is for journeys with an event_trigger audience',
    ])
    const { nodes } = await aJourney(app, {
      audience: { kind: 'event_trigger', name: 'ordered' },
      nodes: [waitUntil({}, condition)],
    })
    expect(nodes[0].branches[0].condition.entry_event_match_attributes).toEqual([{ key: 'order', entry_key: 'order' }])
  })

  test('every kind is taken', async () => {
    const { nodes } = await aJourney(app, { nodes: everyKind(it) })
    expect(new Set(nodes.map(({ kind }: { kind: string }) => kind)).size).toBe(11)
  })
})

test('a setting lowers the shortest wait', async () => {
  const quick = await testApp({ beside: app, clock, journeyMinWaitSeconds: 1 })
  try {
    expect((await create(quick, { nodes: [aWait({ duration_seconds: 1 })] })).status).toBe(201)
    expect((await create(quick, { nodes: [aWait({ duration_seconds: 0 })] })).status).toBe(400)
  } finally {
    await quick.close()
  }
})
