// Journeys that nobody would think of.

import fc from 'fast-check'

export type Things = {
  segmentIds: readonly [string, string]
  pushId: string
  iamId: string
  webhookId: string
}

export const EVENTS = ['rang', 'paid'] as const
export const TAG_KEYS = ['s0', 's1', 'other'] as const

type Draft = Record<string, unknown>

/** `depth`: how deep branches may still be nested. */
export function nodes({ segmentIds, pushId, iamId, webhookId }: Things, depth: number): fc.Arbitrary<Draft[]> {
  const segment = fc.constantFrom(...segmentIds)
  const condition: fc.Arbitrary<Draft> = fc.oneof(
    fc.record({
      kind: fc.constant('segment_membership'),
      included_segment_ids: fc.tuple(segment).map((list) => [...list]),
      excluded_segment_ids: fc.oneof(fc.constant([]), fc.tuple(segment)),
    }),
    fc.record({
      kind: fc.constant('event_trigger'),
      name: fc.constantFrom(...EVENTS),
      attributes: fc.oneof(
        fc.constant([]),
        fc.constantFrom('1', '2').map((value) => [[{ key: 'n', operator: 'greater_or_equal', value }]]),
      ),
      entry_event_match_attributes: fc.oneof(fc.constant([]), fc.constant([{ key: 'n', entry_key: 'n' }])),
    }),
  )
  const inner = depth > 0 ? nodes({ segmentIds, pushId, iamId, webhookId }, depth - 1) : fc.constant([])
  const branch = (more: fc.Arbitrary<Draft>) => fc.tuple(more, inner).map(([more, nodes]) => ({ ...more, nodes }))
  const wait = fc.constantFrom(60, 120, 3_600).map((duration_seconds) => ({ kind: 'wait', duration_seconds }))
  const simple: fc.Arbitrary<Draft>[] = [
    wait,
    fc.constant({ kind: 'send_push', template_id: pushId }),
    fc.constant({ kind: 'send_iam', iam_id: iamId, user_ttl_seconds: 60 }),
    fc.constant({ kind: 'send_webhook', webhook_id: webhookId }),
    fc
      .tuple(fc.constantFrom(...TAG_KEYS), fc.constantFrom('1', ''))
      .map(([key, value]) => ({ kind: 'tag', assignments: { [key]: value } })),
    fc.tuple(fc.nat(22), fc.boolean()).map(([hour, isOwn]) => ({
      kind: 'time_window',
      relative_to: 'schedule_in_timezone',
      windows: [{ start: { hour, minute: 0 }, end: { hour: hour + 1, minute: 30 } }],
      time_zone: 'Europe/Berlin',
      use_user_time_zone: isOwn,
    })),
  ]
  const branching: fc.Arbitrary<Draft>[] = [
    fc.tuple(fc.integer({ min: 1, max: 99 }), fc.boolean(), inner, inner).map(([weight, randomize, a, b]) => ({
      kind: 'split_range',
      randomize_on_entry: randomize,
      branches: [
        { weight, nodes: a },
        { weight: 100 - weight, nodes: b },
      ],
    })),
    fc
      .tuple(branch(condition.map((condition) => ({ condition }))), inner)
      .map(([yes, nodes]) => ({ kind: 'yes_no', branches: [yes, { nodes }] })),
    fc
      .tuple(
        fc.array(branch(condition.map((condition) => ({ condition }))), { minLength: 1, maxLength: 3 }),
        fc.option(fc.tuple(fc.constantFrom(60, 7_200), fc.boolean()), { nil: null }),
      )
      .map(([branches, expiration]) => ({
        kind: 'wait_until',
        branches,
        expiration: expiration && { duration_seconds: expiration[0], exits: expiration[1] },
      })),
  ]
  return fc.array(fc.oneof(...simple, ...(depth > 0 ? [...branching, ...branching] : [])), {
    minLength: depth > 1 ? 2 : 0,
    maxLength: depth > 1 ? 6 : 2,
  })
}

export const earlyExit = ({ segmentIds }: Things): fc.Arbitrary<Draft | null> =>
  fc.option(
    fc.oneof(
      fc.constant({
        rules: { on_segment: { included_segment_ids: [segmentIds[1]] } },
        tag_on_early_exit: { left: '1' },
      }),
      fc.constant({ rules: { on_event: { name: 'paid' } } }),
    ),
    { nil: null },
  )

export type Action =
  | { kind: 'enter'; user: number; n: number }
  | { kind: 'tag'; user: number; key: (typeof TAG_KEYS)[number]; value: '' | '1' }
  | { kind: 'event'; user: number; name: (typeof EVENTS)[number]; n: number }
  | { kind: 'later'; seconds: number }

/** Half of them are there from the beginning. */
export const actions = (users: number): fc.Arbitrary<Action[]> =>
  fc
    .array(
      fc.oneof(
        fc.record({
          kind: fc.constant('tag' as const),
          user: fc.nat(users - 1),
          key: fc.constantFrom(...TAG_KEYS),
          value: fc.constantFrom('' as const, '1' as const),
        }),
        fc.record({
          kind: fc.constant('event' as const),
          user: fc.nat(users - 1),
          name: fc.constantFrom(...EVENTS),
          n: fc.nat(2),
        }),
        fc.record({ kind: fc.constant('later' as const), seconds: fc.constantFrom(1, 61, 3_601, 50_000) }),
        fc.record({ kind: fc.constant('enter' as const), user: fc.nat(users - 1), n: fc.nat(2) }),
      ),
      { minLength: 8, maxLength: 30 },
    )
    .map((list) => [
      ...Array.from({ length: users / 2 }, (_, user): Action => ({ kind: 'enter', user, n: user % 3 })),
      ...list,
    ])
