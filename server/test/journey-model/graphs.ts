// Journeys that nobody would think of, and people who do anything at any time.

import fc from 'fast-check'
import { ZONES } from './one-user.ts'

export type Things = {
  segmentIds: readonly [string, string]
  pushId: string
  iamId: string
  webhookId: string
}

/** The first lets nobody in but into journeys that it is meant for. */
export const EVENTS = ['came', 'rang', 'paid'] as const
export const TAG_KEYS = ['s0', 's1', 'other'] as const

type Draft = Record<string, unknown>

export type Assignment = { key: (typeof TAG_KEYS)[number]; value: '1' | '' }

type Weighted = [weight: number, arbitrary: fc.Arbitrary<Draft>]

const zone = fc.constantFrom(...Object.keys(ZONES))
const weekday = fc.oneof(
  { weight: 5, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 7 }) },
)
const aWindow = fc
  .tuple(fc.nat(23), fc.constantFrom(0, 30), fc.constantFrom(2, 9), weekday, zone, fc.boolean())
  .map(([hour, minute, hours, day_of_week, time_zone, use_user_time_zone]) => ({
    kind: 'time_window',
    relative_to: 'schedule_in_timezone',
    windows: [{ start: { hour, minute }, end: { hour: (hour + hours) % 24, minute: 0 }, day_of_week }],
    time_zone,
    use_user_time_zone,
  }))
const anyAttributes = fc.oneof(
  fc.constant([]),
  fc.constantFrom('1', '2').map((value) => [[{ key: 'n', operator: 'greater_or_equal', value }]]),
)

/** `depth`: how deep branches may still be nested. `byEvent`: whether an event lets in, with which others can be compared. */
export function nodes(
  things: Things,
  tags: readonly Assignment[],
  byEvent: boolean,
  depth: number,
): fc.Arbitrary<Draft[]> {
  const { segmentIds, pushId, iamId, webhookId } = things
  const segment = fc.constantFrom(...segmentIds)
  const condition: fc.Arbitrary<Draft> = fc.oneof(
    fc.record({
      kind: fc.constant('segment_membership'),
      included_segment_ids: fc.tuple(segment),
      excluded_segment_ids: fc.oneof(fc.constant([]), fc.tuple(segment)),
    }),
    fc.record({
      kind: fc.constant('event_trigger'),
      name: fc.constantFrom(...EVENTS),
      attributes: anyAttributes,
      entry_event_match_attributes: fc.oneof(
        fc.constant([]),
        fc.constant(byEvent ? [{ key: 'n', entry_key: 'n' }] : []),
      ),
    }),
  )
  const inner = depth > 0 ? nodes(things, tags, byEvent, depth - 1) : fc.constant([])
  const branch = (more: fc.Arbitrary<Draft>) => fc.tuple(more, inner).map(([more, nodes]) => ({ ...more, nodes }))
  const simple: Weighted[] = [
    [3, fc.constantFrom(60, 120, 3_600).map((duration_seconds) => ({ kind: 'wait', duration_seconds }))],
    [2, fc.constant({ kind: 'send_push', template_id: pushId })],
    [1, fc.constantFrom(60, 500_000, null).map((ttl) => ({ kind: 'send_iam', iam_id: iamId, user_ttl_seconds: ttl }))],
    [1, fc.constant({ kind: 'send_webhook', webhook_id: webhookId })],
    [4, fc.constantFrom(...tags).map(({ key, value }) => ({ kind: 'tag', assignments: { [key]: value } }))],
    [1, aWindow],
    [1, fc.constant({ kind: 'time_window', relative_to: 'last_active_time' })],
  ]
  const split = fc
    .tuple(fc.integer({ min: 1, max: 99 }), fc.boolean(), inner, inner, inner)
    .map(([weight, randomize, a, b, c]) => ({
      kind: 'split_range',
      randomize_on_entry: randomize,
      branches: [
        { weight, nodes: a },
        { weight: (100 - weight) / 2, nodes: b },
        { weight: (100 - weight) / 2, nodes: c },
      ],
    }))
  const asking = branch(condition.map((condition) => ({ condition })))
  const yesNo = fc.tuple(asking, inner).map(([yes, nodes]) => ({ kind: 'yes_no', branches: [yes, { nodes }] }))
  const expiration = fc.record({ duration_seconds: fc.constantFrom(60, 7_200), exits: fc.boolean() })
  const waitUntil = fc.record({
    kind: fc.constant('wait_until'),
    branches: fc.array(asking, { minLength: 1, maxLength: 3 }),
    expiration: fc.option(expiration),
  })
  const branching: Weighted[] =
    depth > 0
      ? [
          [5, split],
          [4, yesNo],
          [7, waitUntil],
        ]
      : []
  const node = fc.oneof(...[...simple, ...branching].map(([weight, arbitrary]) => ({ weight, arbitrary })))
  return fc.array(node, { minLength: depth > 1 ? 2 : 0, maxLength: depth > 1 ? 6 : 2 })
}

const earlyExit = ({ segmentIds }: Things): fc.Arbitrary<Draft | null> =>
  fc.option(
    fc.record({
      rules: fc.constantFrom<Draft>(
        { on_segment: { included_segment_ids: [segmentIds[1]] } },
        { when_not_in_audience: true, on_event: { name: 'paid' } },
        { on_event: { name: 'paid' } },
        { on_event: { name: 'rang' } },
        { on_session: true },
        { on_session: true, on_segment: { included_segment_ids: [segmentIds[1]] } },
      ),
      tag_on_early_exit: fc.constantFrom({}, { left: '1' }),
    }),
    { nil: null },
  )

/** `isOnce`: of two runs of one user at a time nobody says which sees the other's tags first. */
export type Plan = { isOnce: boolean; fields: Draft }

export function plans(things: Things): fc.Arbitrary<Plan> {
  const [first, second] = things.segmentIds
  const deciding = TAG_KEYS.flatMap((key): Assignment[] => [
    { key, value: '1' },
    { key, value: '' },
  ])
  const harmless: Assignment[] = [{ key: 'other', value: '1' }]
  const ofEvent = (isOnce: boolean) =>
    fc.record({
      isOnce: fc.constant(isOnce),
      fields: fc.record({
        audience: fc.record({
          kind: fc.constant('event_trigger'),
          name: fc.constantFrom('came', 'came', 'rang'),
          attributes: anyAttributes,
        }),
        early_exit: earlyExit(things),
        nodes: nodes(things, isOnce ? deciding : harmless, true, 2),
      }),
    })
  const ofSegment = fc.record({
    isOnce: fc.constant(false),
    fields: fc.record({
      audience: fc.record({
        kind: fc.constant('segment'),
        included_segment_ids: fc.constant([first]),
        excluded_segment_ids: fc.constantFrom([], [], [second]),
        future_additions_only: fc.constantFrom(false, false, true),
      }),
      early_exit: earlyExit(things),
      reentry_rules: fc.constantFrom(null, { duration_seconds: 600 }, { duration_seconds: 20_000 }),
      nodes: nodes(things, deciding, false, 2),
    }),
  })
  /** Half of all wait from the beginning, and for something that they may do too late. */
  const ofPatience = fc.constantFrom('rang', 'paid').map((name) => ({
    isOnce: true,
    fields: {
      audience: { kind: 'event_trigger', name: 'came', attributes: [] },
      early_exit: null,
      nodes: [
        {
          kind: 'wait_until',
          branches: [
            {
              condition: { kind: 'event_trigger', name, attributes: [], entry_event_match_attributes: [] },
              nodes: [{ kind: 'send_push', template_id: things.pushId }],
            },
          ],
          expiration: { duration_seconds: 7_200, exits: true },
        },
      ],
    },
  }))
  return fc.oneof(
    { weight: 3, arbitrary: ofEvent(true) },
    { weight: 3, arbitrary: ofEvent(false) },
    { weight: 3, arbitrary: ofSegment },
    { weight: 2, arbitrary: ofPatience },
  )
}

/** What some of them do at a time, each for themselves. */
export type Action =
  | { kind: 'tag'; users: number[]; key: (typeof TAG_KEYS)[number]; value: '' | '1' }
  | { kind: 'event'; users: number[]; name: (typeof EVENTS)[number]; n: number }
  | { kind: 'session'; users: number[] }
  | { kind: 'later'; seconds: number }

/** What happens, and whether anybody looks before the next thing does. */
export type Moment = { action: Action; isSeen: boolean }

/** Half of them come by the event from the beginning. */
export const moments = (count: number): fc.Arbitrary<Moment[]> => {
  const everybody = Array.from({ length: count }, (_, n) => n)
  const users = fc.subarray(everybody, { minLength: 1, maxLength: count / 3 })
  const tag = fc.record({
    kind: fc.constant('tag' as const),
    users,
    key: fc.constantFrom(...TAG_KEYS),
    value: fc.constantFrom('' as const, '1' as const, '1' as const),
  })
  const event = fc.record({
    kind: fc.constant('event' as const),
    users,
    name: fc.constantFrom(...EVENTS),
    n: fc.nat(2),
  })
  const later = fc.record({
    kind: fc.constant('later' as const),
    seconds: fc.constantFrom(1, 61, 400, 3_601, 7_201, 90_000),
  })
  const session = fc.record({ kind: fc.constant('session' as const), users })
  const action: fc.Arbitrary<Action> = fc.oneof(tag, tag, tag, event, event, event, later, later, later, session)
  const first: Moment = {
    action: { kind: 'event', users: everybody.slice(0, count / 2), name: 'came', n: 0 },
    isSeen: true,
  }
  const one = fc.record({ action, isSeen: fc.constantFrom(true, true, false) }).map((moment) => [moment])
  /** Before anybody sees that some time is over, everybody does something that is too late. */
  const tooLate = fc.tuple(fc.constantFrom(61, 7_201), event).map(([seconds, action]): Moment[] => [
    { action: { kind: 'later', seconds }, isSeen: false },
    { action, isSeen: true },
  ])
  const some = fc.oneof({ weight: 6, arbitrary: one }, { weight: 2, arbitrary: tooLate })
  return fc.array(some, { minLength: 8, maxLength: 22 }).map((list) => [first, ...list.flat()])
}
