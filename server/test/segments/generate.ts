// People and filters made up for tests: few values, so that filters meet people, and among them every text that has ever
// been mistaken for a number, a version or a date.

import fc from 'fast-check'
import { newId } from '../../src/lib/ids.ts'
import type { SegmentFilter } from '../../src/segments/filters/tree.ts'
import { newUser } from '../../src/users/new-user.ts'
import type { StoredPurchase } from '../../src/users/properties/stored.ts'
import {
  hashToken,
  newSubscription,
  type Subscription,
  type SubscriptionType,
  subscriptionTypes,
} from '../../src/users/subscriptions/subscription.ts'
import type { User } from '../../src/users/user.ts'

export const NOW = new Date('2030-01-01T09:00:00.123Z')
const HOUR_MS = 3_600_000

export type Event = { name: string; at: string }
export type Person = { user: User; purchases: StoredPurchase[]; events: Event[] }

const KEYS = ['plan', 'level', 'since', 'ключ 🔔', 'a\'b"c$1', 'constructor']
const NUMBERS = [
  '0',
  '-0',
  '1',
  '1.0',
  '01',
  '1.5',
  '-3',
  '007',
  '10',
  '9',
  '99999999999999999999',
  '0.00000000000000000001',
]
const NO_NUMBERS = [
  '999999999999999999999',
  '1e5',
  '1e999999',
  'Infinity',
  '-Infinity',
  'NaN',
  ' 5',
  '5 ',
  '5\n',
  '+5',
  '.5',
  '5.',
  '--5',
  '0x10',
  '1,000',
  '５',
  '٣',
  '1_000',
  '9'.repeat(1000),
]
const VERSIONS = [
  '1',
  '1.0',
  '1.0.0',
  '1.10',
  '1.9',
  '1.9.9',
  '2',
  '01.2',
  '1.2.0.1',
  '1.2',
  '0',
  '0.0',
  '999999999999999999',
]
const NO_VERSIONS = [
  '1.2-beta',
  'v1',
  '1..2',
  '1.',
  '.1',
  '',
  '1.2.3.4.5.6.7.8.9.10.11',
  '9999999999999999999',
  '1.2\n',
]
const WORDS = [
  'gold',
  'silver',
  'Gold',
  'gold ',
  'straße',
  '漢字',
  'a,b',
  "'; drop table users; --",
  '$1',
  '%',
  '\\',
  'true',
]
const SECONDS = [0, 1, 3600, 86_400, -3600, 0.001].map((ago) => String(NOW.getTime() / 1000 - ago))
const COUNTRIES = ['DE', 'de', 'FR', 'US']
const LANGUAGES = ['en', 'EN', 'de', 'zh-Hans', 'tr', 'il', 'IL']
const SKUS = ['bell', 'clapper']
const EVENTS = ['bought', 'opened', 'ключ']
const LATITUDES = [0, 52.52, 48.137, 90, -90, -33.9]
const LONGITUDES = [0, 13.405, 11.575, 180, -180, 151.2]
const EMAILS = ['ada@example.com', 'Bob@Example.com', 'eve@example.com']

const text = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 12 })
  .filter((it) => it.isWellFormed() && !it.includes('\0'))
const tagValue = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.constantFrom(...NO_NUMBERS),
  fc.constantFrom(...WORDS, ...SECONDS, ...VERSIONS),
  text,
)
const perhaps = <T>(it: fc.Arbitrary<T>) => fc.option(it, { nil: null })
const hoursAgo = fc.constantFrom(0, 0.001, 1, 24, 168, 168.5, 1000)
const momentAgo = hoursAgo.map((hours) => new Date(NOW.getTime() - Math.round(hours * HOUR_MS)).toISOString())

const purchase = fc.record({
  sku: fc.constantFrom(...SKUS),
  iso: fc.constant('USD'),
  amount: fc.constantFrom('1', '$2.50', '€0.000000001', '999999'),
  count: fc.integer({ min: 1, max: 3 }),
})
const event = fc.record({ name: fc.constantFrom(...EVENTS), at: momentAgo })

const device = fc.record({
  type: fc.constantFrom(...subscriptionTypes),
  enabled: fc.boolean(),
  hasToken: fc.boolean(),
  notificationTypes: perhaps(fc.constantFrom(1, 0, -2, 7)),
  appVersion: perhaps(fc.constantFrom(...VERSIONS, ...NO_VERSIONS)),
  rooted: perhaps(fc.boolean()),
  language: perhaps(fc.constantFrom(...LANGUAGES)),
  country: perhaps(fc.constantFrom(...COUNTRIES)),
  lat: perhaps(fc.constantFrom(...LATITUDES)),
  long: perhaps(fc.constantFrom(...LONGITUDES)),
  createdAt: momentAgo,
  lastActive: perhaps(momentAgo),
  sessionCount: fc.constantFrom(0, 1, 5, 9_007_199_254_740_991),
  sessionTime: fc.constantFrom(0, 60, 3600),
})

let made = 0

export const person: fc.Arbitrary<Person> = fc
  .record({
    tags: fc.dictionary(fc.constantFrom(...KEYS), tagValue, { maxKeys: 4, noNullPrototype: true }),
    language: perhaps(fc.constantFrom(...LANGUAGES)),
    country: perhaps(fc.constantFrom(...COUNTRIES)),
    lat: perhaps(fc.constantFrom(...LATITUDES)),
    long: perhaps(fc.constantFrom(...LONGITUDES)),
    testUserName: perhaps(fc.constant('tester')),
    amountSpent: fc.constantFrom('0', '0.000000001', '12.5', '9007199254740991'),
    externalId: perhaps(fc.constantFrom(...WORDS)),
    email: perhaps(fc.constantFrom(...EMAILS)),
    devices: fc.array(device, { maxLength: 3 }),
    purchases: fc.array(purchase, { maxLength: 3 }),
    events: fc.array(event, { maxLength: 4 }),
  })
  .map(({ tags, externalId, email, devices, purchases, events, ...properties }): Person => {
    const user = newUser(newId(), NOW.toISOString())
    user.properties = { ...user.properties, tags, ...properties }
    if (externalId !== null) user.aliases.set('external_id', externalId)
    const add = (it: Subscription) => user.subscriptions.set(it.id, it)
    for (const { type, hasToken, lastActive, createdAt, ...fields } of devices) {
      const token = hasToken ? `token-${++made}` : null
      const it = newSubscription(newId(), user.id, kindOf(type, token), createdAt, {})
      add({ ...it, ...fields, createdAt, lastActive: lastActive ?? createdAt })
    }
    if (email !== null) add(newSubscription(newId(), user.id, kindOf('Email', email), NOW.toISOString(), {}))
    return { user, purchases, events }
  })

const kindOf = (type: SubscriptionType, token: string | null) => ({
  type,
  spelling: type,
  token,
  tokenHash: token === null ? null : hashToken(type, token),
})

const number = fc.oneof(fc.constantFrom(...NUMBERS, '-1', '5'), fc.integer({ min: -5, max: 20 }))
const one = (...values: (string | number | boolean)[]) => fc.constantFrom(...values)
const lists = (values: readonly string[]) =>
  fc.oneof(
    fc
      .array(one(...values.filter((it) => !it.includes(',') && it.trim() === it)), { minLength: 1, maxLength: 4 })
      .map((it) => it.join(', ')),
    fc.array(one(...values), { minLength: 1, maxLength: 20 }),
  )
const choices = (field: string, values: readonly string[]) =>
  fc.oneof(
    fc.record({ field: one(field), relation: one('=', '!='), value: one(...values) }),
    fc.record({ field: one(field), relation: one('exists', 'not_exists') }),
    fc.record({ field: one(field), relation: one('in_array', 'not_in_array'), value: lists(values) }),
  )
const compared = (field: string, value: fc.Arbitrary<unknown>, ...relations: string[]) =>
  fc.record({ field: one(field), relation: one(...relations), value })
const key = { key: one(...KEYS) }
const tagged = (filter: fc.Arbitrary<SegmentFilter>) =>
  fc.tuple(filter, fc.record(key)).map(([a, b]) => ({ ...a, ...b }))

/** Every field with every one of its relations. */
export const filterOf: Record<string, fc.Arbitrary<SegmentFilter>> = {
  tag: tagged(
    fc.oneof(
      choices('tag', [...WORDS, ...NUMBERS]),
      compared('tag', number, '>', '<'),
      compared('tag', one('0', '3600', 86_400, '-3600', '0.001', '-0.001'), 'time_elapsed_gt', 'time_elapsed_lt'),
    ),
  ),
  country: choices('country', COUNTRIES),
  language: choices('language', LANGUAGES),
  external_user_id: choices('external_user_id', WORDS),
  device_type: choices('device_type', ['0', '1', '5', '11', '14', 'iOSPush', 'EMAIL', 'AlexaPush']),
  app_version: fc.oneof(
    compared('app_version', one(...VERSIONS), '>', '<', '=', '!='),
    compared('app_version', one(...NO_VERSIONS), '=', '!='),
  ),
  session_count: compared('session_count', one('0', 1, '4.5', '9007199254740991'), '>', '<', '=', '!='),
  session_time: compared('session_time', one('0', 60, '3599.9'), '>', '<', '=', '!='),
  amount_spent: compared('amount_spent', one('0', '0.000000001', 12.5, '100'), '>', '<', '=', '!='),
  bought_sku: fc
    .tuple(
      compared('bought_sku', one('0', '1', '2.5', '5', '3.000000001'), '>', '<', '='),
      fc.record({ key: one(...SKUS, 'none') }),
    )
    .map(([a, b]) => ({ ...a, ...b })),
  last_session: fc.record({ field: one('last_session'), relation: one('>', '<'), hours_ago: hoursAgo.map(String) }),
  first_session: fc.record({ field: one('first_session'), relation: one('>', '<'), hours_ago: hoursAgo }),
  location: fc.record({
    field: one('location'),
    radius: one(0, '1', 504_000, 505_000, 20_015_000, 20_015_115, 1e8),
    lat: one(...LATITUDES),
    long: one(...LONGITUDES),
  }),
  email: compared('email', one(...EMAILS, 'ADA@example.com', 'nobody@example.com'), '=', '!='),
  rooted: compared('rooted', one('true', 'false', true, 0), '=', '!='),
  test_users: compared('test_users', one('true', 'false'), '=', '!='),
  subscribed: compared('subscribed', one('true', false), '=', '!='),
  event: fc.record(
    {
      field: one('event'),
      name: one(...EVENTS, 'never'),
      relation: one('>=', '>', '<=', '<', '=', '!='),
      count: one(0, 1, '2', 3),
      within_days: one(0.001, '1', 7, 7.02, 42),
    },
    { requiredKeys: ['field', 'name'] },
  ),
}

const clause = fc.oneof(...Object.values(filterOf))

/** Lists with operators and groups in them. */
export const filters: fc.Arbitrary<SegmentFilter[]> = fc.letrec<{ list: SegmentFilter[]; item: SegmentFilter }>(
  (tie) => ({
    item: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      { weight: 5, arbitrary: clause },
      { weight: 1, arbitrary: tie('list').map((group) => ({ group })) },
    ),
    list: fc
      .array(fc.tuple(fc.constantFrom('', 'AND', 'OR'), tie('item')), { minLength: 1, maxLength: 4 })
      .map((pairs) =>
        pairs.flatMap(([operator, item], i): SegmentFilter[] =>
          i === 0 || operator === '' ? [item] : [{ operator }, item],
        ),
      ),
  }),
).list
