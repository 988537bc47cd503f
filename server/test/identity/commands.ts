// Commands to try, from few labels, values and tokens, so that they meet each other all the time.
// Ids are not known in advance: "pick user 3" is resolved when the command is run.

import fc from 'fast-check'
import type { Bindings } from './answers.ts'
import type { Command, Deltas, Draft, Identity, PlayerFields, Properties, Purchase, State, Target } from './model.ts'

/** The command with each pick replaced by an id that is or was there and is known, or by one that never was. */
export function resolve(command: Command, state: State, bindings: Bindings): Command {
  const pick = (text: string) => {
    const [, noun, n] = /^pick (user|subscription) (\d+)$/.exec(text) ?? []
    if (noun === undefined) return text
    // The newest first: they are the most likely to be still there.
    const made = noun === 'user' ? state.knownUsers : state.knownSubscriptions
    const known = made.filter((name) => bindings.has(name)).toReversed()
    return known[Number(n) % (known.length + 1)] ?? '§nobody'
  }
  return JSON.parse(JSON.stringify(command), (_, value) => (typeof value === 'string' ? pick(value) : value))
}

const nth = (noun: string) => fc.nat({ max: 6 }).map((n) => `pick ${noun} ${n}`)
const user = nth('user')
const subscription = nth('subscription')

const LABELS = Array.from({ length: 11 }, (_, i) => `label${i + 1}`)
const label = fc.oneof({ weight: 3, arbitrary: fc.constant('external_id') }, fc.constantFrom(...LABELS))
const value = fc.constantFrom('a', 'b', 'c')
const alias = fc.record({ label, value })

const some = fc
  .uniqueArray(alias, { minLength: 1, maxLength: 3, selector: (it) => it.label })
  .map((list): Identity => Object.fromEntries(list.map((it) => [it.label, it.value])))
const nearTheLimit = fc
  .record({ labels: fc.subarray(LABELS, { minLength: 8 }), value })
  .map(({ labels, value }): Identity => Object.fromEntries(labels.map((it) => [it, value])))
const identity = fc.oneof({ weight: 8, arbitrary: some }, { weight: 2, arbitrary: nearTheLimit })
const identityWithId = fc.oneof(
  { weight: 9, arbitrary: identity },
  fc.record({ onesignal_id: user }),
  fc.record({ onesignal_id: user, external_id: value }),
  fc.constant({}),
)

const target: fc.Arbitrary<Target> = fc.oneof({ weight: 3, arbitrary: alias }, fc.record({ user }))

const pushToken = fc.constantFrom('t1', 't2', 't3', 't4', '')
const email = fc.constantFrom('a@b.co', 'A@B.co', 'c@d.co')
const phone = fc.constantFrom('+15550000001', '+15550000002')
const anyToken = fc.oneof(pushToken, email, phone, fc.constant('nonsense'))
const anyType = fc.constantFrom('iOSPush', 'iospush', 'AndroidPush', 'Email', 'email', 'SMS', 'Pigeon')

const fields = fc.record(
  {
    enabled: fc.boolean(),
    notification_types: fc.constantFrom(1, 7, 0, -2, -31),
    session_count: fc.nat({ max: 5 }),
    sdk: fc.constantFrom('5.0', '5.1'),
  },
  { requiredKeys: [] },
)
const plainDraft: fc.Arbitrary<Draft> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('iOSPush', 'iospush', 'AndroidPush'), token: pushToken }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('Email', 'email'), token: email }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('SMS'), token: phone }) },
  { weight: 1, arbitrary: fc.record({ type: anyType, token: anyToken }) },
  { weight: 2, arbitrary: fc.record({ id: subscription }) },
  { weight: 1, arbitrary: fc.record({ id: subscription, type: anyType, token: anyToken }) },
  { weight: 1, arbitrary: fc.record({ id: subscription, token: anyToken }) },
  { weight: 1, arbitrary: fc.record({ token: anyToken }) },
)
const draft: fc.Arbitrary<Draft> = fc.oneof(
  { weight: 3, arbitrary: plainDraft },
  fc.tuple(plainDraft, fields).map(([a, b]) => ({ ...a, ...b })),
)
const manyDrafts = fc
  .record({ from: fc.nat({ max: 4 }), length: fc.integer({ min: 17, max: 21 }) })
  .map(({ from, length }): Draft[] =>
    Array.from({ length }, (_, i) => ({ type: 'AndroidPush', token: `many${from + i}` })),
  )
const drafts = fc.oneof(
  { weight: 9, arbitrary: fc.array(draft, { minLength: 1, maxLength: 3 }) },
  { weight: 1, arbitrary: manyDrafts },
)
const change: fc.Arbitrary<Draft> = fc.oneof(
  fields,
  fc.record({ token: anyToken }),
  fc.record({ token: anyToken, type: anyType }),
)

const purchase: fc.Arbitrary<Purchase> = fc.record(
  {
    sku: fc.constantFrom('x', 'y'),
    iso: fc.constant('EUR'),
    amount: fc.constantFrom('1.25', '$0.10', '3'),
    count: fc.integer({ min: 1, max: 3 }),
  },
  { requiredKeys: ['sku', 'iso', 'amount'] },
)
const purchases = fc.array(purchase, { minLength: 1, maxLength: 2 })
const tags = fc.dictionary(fc.constantFrom('k1', 'k2'), fc.constantFrom('', 'v1', 'v2'))
const properties: fc.Arbitrary<Properties> = fc.record(
  { tags, language: fc.constantFrom('en', 'fr', ''), amount_spent: fc.constantFrom(0, 1.5, 20) },
  { requiredKeys: [] },
)
const deltas: fc.Arbitrary<Deltas> = fc.record(
  { session_count: fc.nat({ max: 2 }), session_time: fc.nat({ max: 90 }), purchases },
  { requiredKeys: [] },
)
const playerFields: fc.Arbitrary<PlayerFields> = fc.record(
  {
    external_user_id: fc.constantFrom('a', 'b', 'c', ''),
    tags,
    notification_types: fc.constantFrom(1, -2, -20),
    language: fc.constantFrom('en', 'de'),
    session_count: fc.nat({ max: 3 }),
  },
  { requiredKeys: [] },
)

const kind = <Kind extends Command['kind']>(name: Kind) => fc.constant(name)

/** Commands that change something, or try to. */
export const writes: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: kind('create user'), identity }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('create user'), subscriptions: drafts }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('create user'), identity, properties, subscriptions: drafts }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('create user'), identity: identityWithId, properties }) },
  { weight: 5, arbitrary: fc.record({ kind: kind('update aliases'), target, identity: identityWithId }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: kind('update aliases by subscription'), subscription, identity: identityWithId }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind('delete alias'),
      target,
      label: fc.oneof({ weight: 9, arbitrary: label }, fc.constant('onesignal_id')),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: kind('create subscription'), target, draft }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('update subscription'), subscription, draft: change }) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({
        kind: kind('update subscription by token'),
        type: fc.constantFrom('Email', 'email'),
        token: email,
        draft: change,
      }),
      fc.record({
        kind: kind('update subscription by token'),
        type: anyType,
        token: fc.constantFrom('t1', 't2', 't3'),
        draft: change,
      }),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kind('transfer subscription'),
      subscription,
      identity: fc.oneof(
        { weight: 6, arbitrary: alias.map((it): Identity => ({ [it.label]: it.value })) },
        { weight: 2, arbitrary: fc.record({ onesignal_id: user }) },
        { weight: 1, arbitrary: identityWithId },
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('delete subscription'), subscription }) },
  {
    weight: 4,
    arbitrary: fc.record(
      { kind: kind('update user'), target, properties, deltas, selected: subscription },
      { requiredKeys: ['kind', 'target'] },
    ),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('delete user'), target }) },
  {
    weight: 3,
    arbitrary: fc.oneof(
      fc.record({
        kind: kind('add player'),
        device_type: fc.constantFrom(0, 1),
        identifier: pushToken,
        fields: playerFields,
      }),
      fc.record({ kind: kind('add player'), device_type: fc.constant(11), identifier: email, fields: playerFields }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.record(
      { kind: kind('edit player'), player: subscription, identifier: anyToken, fields: playerFields },
      { requiredKeys: ['kind', 'player', 'fields'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('player session'), player: subscription }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('player purchase'), player: subscription, purchases }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: kind('player focus'), player: subscription, seconds: fc.nat({ max: 60 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('delete player'), player: subscription }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('tags by external id'), externalId: value, tags }) },
)

export const views: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: kind('view user'), target }) },
  fc.record({ kind: kind('view identity'), target }),
  fc.record({ kind: kind('view identity by subscription'), subscription }),
  fc.record({ kind: kind('view player'), player: subscription }),
)
