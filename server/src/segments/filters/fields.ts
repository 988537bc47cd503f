// The fields of the filter language: the relations and operands of each, and the tests that they become.

import { ownProperty } from '../../lib/own-property.ts'
import { hashToken, isEmail, subscriptionTypes, typeOfDeviceNumber } from '../../users/subscriptions/subscription.ts'
import { FilterEntry } from './filter-entry.ts'
import type { ClauseTest, Comparison, FilterField, SegmentFilter } from './tree.ts'
import { isVersion, lowerAscii, upperAscii } from './values.ts'

const MAX_KEY = 255
/** 114 years. Larger offsets would eventually exceed PostgreSQL's date range. */
const MAX_HOURS = 1_000_000
const MIN_DAYS = 0.001
const MAX_DAYS = 3_650
const MAX_COUNT = 1_000_000
const MAX_METRES = 100_000_000

type ReadTest = (entry: FilterEntry) => ClauseTest
type FieldRelations = Record<string, ReadTest>
/** Normalizes the text of a value for comparison; throws when it can never match. */
type NormalizeValue = (entry: FilterEntry, text: string) => string

const verbatim: NormalizeValue = (_, text) => text

const choiceRelations = (normalize: NormalizeValue): FieldRelations => {
  const one =
    (want: boolean) =>
    (entry: FilterEntry): ClauseTest => ({
      kind: 'oneOf',
      values: [normalize(entry, entry.text('value'))],
      want,
    })
  const many =
    (want: boolean) =>
    (entry: FilterEntry): ClauseTest => ({
      kind: 'oneOf',
      values: entry.list('value').map((text) => normalize(entry, text)),
      want,
    })
  return {
    '=': one(true),
    '!=': one(false),
    in_array: many(true),
    not_in_array: many(false),
    exists: () => ({ kind: 'present', want: true }),
    not_exists: () => ({ kind: 'present', want: false }),
  }
}

const comparisonRelations = (read: (relation: Comparison) => ReadTest, ...relations: Comparison[]): FieldRelations =>
  Object.fromEntries(relations.map((relation) => [relation, read(relation)]))

const number =
  (relation: Comparison): ReadTest =>
  (entry) => ({
    kind: 'number',
    relation,
    value: entry.decimal('value'),
  })

const ago =
  (relation: '>' | '<'): ReadTest =>
  (entry) => ({
    kind: 'ago',
    relation,
    hours: entry.number('hours_ago', 0, MAX_HOURS),
  })

const elapsed =
  (relation: '>' | '<'): ReadTest =>
  (entry) => ({
    kind: 'elapsed',
    relation,
    seconds: entry.decimal('value'),
  })

/** Texts that are not versions can only be compared for equality, because they have no order. */
const version =
  (relation: Comparison): ReadTest =>
  (entry) => {
    const value = entry.text('value', 256)
    if (isVersion(value)) return { kind: 'version', relation, value }
    if (relation === '=' || relation === '!=') return { kind: 'oneOf', values: [value], want: relation === '=' }
    throw entry.error('value must be a version: numbers with dots between them, such as 1.10.2')
  }

const flag: FieldRelations = {
  '=': (entry) => ({ kind: 'is', want: readFlag(entry) }),
  '!=': (entry) => ({ kind: 'is', want: !readFlag(entry) }),
}

function readFlag(entry: FilterEntry): boolean {
  const text = entry.text('value')
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  throw entry.error('value must be "true" or "false"')
}

const countryCode: NormalizeValue = (entry, text) => {
  if (!/^[A-Za-z]{2}$/.test(text)) throw entry.error('value must be a country code of two letters')
  return upperAscii(text)
}

const languageCode: NormalizeValue = (entry, text) => {
  if (!/^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$/.test(text)) throw entry.error('value must be a language code')
  return lowerAscii(text)
}

const typesByName = new Map(subscriptionTypes.map((type) => [type.toLowerCase(), type]))

const deviceType: NormalizeValue = (entry, text) => {
  const type = /^\d{1,2}$/.test(text) ? typeOfDeviceNumber(Number(text)) : typesByName.get(text.toLowerCase())
  if (!type) throw entry.error('value must be a device type: a number such as 0 for iOS, or a name such as "iOSPush"')
  return type
}

const within: ReadTest = (entry) => ({
  kind: 'within',
  metres: entry.number('radius', 0, MAX_METRES),
  lat: entry.number('lat', -90, 90),
  long: entry.number('long', -180, 180),
})

const happened =
  (relation: Comparison): ReadTest =>
  (entry) => {
    const count = entry.has('count') ? entry.number('count', 0, MAX_COUNT) : 1
    if (!Number.isInteger(count)) throw entry.error('count must be a whole number')
    const days = entry.has('within_days') ? entry.number('within_days', MIN_DAYS, MAX_DAYS) : undefined
    return { kind: 'happened', relation, count, days }
  }

const emailKey = (entry: FilterEntry): string => {
  const address = entry.text('value')
  if (!isEmail(address)) throw entry.error('value must be an email address')
  return hashToken('Email', address)
}

type FieldDefinition = {
  relations: FieldRelations
  /** The default relation. */
  relation?: string
  operands: readonly string[]
  /** Reads what the clause is about, besides its field. */
  key?: (entry: FilterEntry) => string
}

const VALUE = ['value'] as const
const readKey = (entry: FilterEntry) => entry.name('key', MAX_KEY)

export const filterFields: Readonly<Record<FilterField, FieldDefinition>> = {
  tag: {
    relations: {
      ...choiceRelations(verbatim),
      ...comparisonRelations(number, '>', '<'),
      time_elapsed_gt: elapsed('>'),
      time_elapsed_lt: elapsed('<'),
    },
    operands: ['key', 'value'],
    key: readKey,
  },
  country: { relations: choiceRelations(countryCode), operands: VALUE },
  language: { relations: choiceRelations(languageCode), operands: VALUE },
  external_user_id: { relations: choiceRelations(verbatim), operands: VALUE },
  device_type: { relations: choiceRelations(deviceType), operands: VALUE },
  app_version: { relations: comparisonRelations(version, '>', '<', '=', '!='), operands: VALUE },
  session_count: { relations: comparisonRelations(number, '>', '<', '=', '!='), operands: VALUE },
  session_time: { relations: comparisonRelations(number, '>', '<', '=', '!='), operands: VALUE },
  amount_spent: { relations: comparisonRelations(number, '>', '<', '=', '!='), operands: VALUE },
  bought_sku: { relations: comparisonRelations(number, '>', '<', '='), operands: ['key', 'value'], key: readKey },
  last_session: { relations: { '>': ago('>'), '<': ago('<') }, operands: ['hours_ago'] },
  first_session: { relations: { '>': ago('>'), '<': ago('<') }, operands: ['hours_ago'] },
  location: {
    relations: { '=': within, '<': within },
    relation: '=',
    operands: ['radius', 'lat', 'long'],
  },
  email: {
    relations: { '=': () => ({ kind: 'is', want: true }), '!=': () => ({ kind: 'is', want: false }) },
    operands: VALUE,
    key: emailKey,
  },
  rooted: { relations: flag, operands: VALUE },
  test_users: { relations: flag, operands: VALUE },
  subscribed: { relations: flag, operands: VALUE },
  event: {
    relations: comparisonRelations(happened, '>=', '>', '<=', '<', '=', '!='),
    relation: '>=',
    operands: ['name', 'count', 'within_days'],
    key: (entry) => entry.name('name', 128),
  },
}

const isFilterField = (name: unknown): name is FilterField =>
  typeof name === 'string' && Object.hasOwn(filterFields, name)
/**
 * Quotes a value in an error message, shortened without cutting a character in two. Values other than text are shown as
 * JSON.
 */
const quoteForError = (given: unknown) => {
  const text = typeof given === 'string' ? given : JSON.stringify(given)
  return `"${[...text.slice(0, 200)].slice(0, 40).join('')}"`
}

/** Reads one filter. Returns its test, and the filter itself without fields that have no meaning for it. */
export function readFilterField(
  filter: SegmentFilter,
  place: string,
): { filter: SegmentFilter; field: FilterField; key: string; test: ClauseTest } {
  const entry = new FilterEntry(filter, place)
  const { field } = filter
  if (!entry.has('field')) throw entry.error('field is required')
  if (!isFilterField(field)) throw entry.error(`unknown field ${quoteForError(field)}`)
  const { relations, operands, key, relation: implied } = filterFields[field]
  const relation = entry.has('relation') ? filter.relation : implied
  if (relation === undefined) throw entry.error('relation is required')
  if (typeof relation !== 'string' || !Object.hasOwn(relations, relation))
    throw entry.error(
      `field "${field}" has no relation ${quoteForError(relation)}; it has ${Object.keys(relations).join(', ')}`,
    )
  const known = ['field', 'relation', ...operands].filter((name) => entry.has(name))
  return {
    filter: Object.fromEntries(known.map((name) => [name, ownProperty(filter, name)])),
    field,
    key: key?.(entry) ?? '',
    test: (ownProperty(relations, relation) as ReadTest)(entry),
  }
}
