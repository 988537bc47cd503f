import { describe, expect, test } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import { filterFields } from './fields.ts'
import { readFilters } from './read-filters.ts'
import type { FilterNode } from './tree.ts'

const tag = (key: string, more: object = {}) => ({ field: 'tag', key, relation: '=', value: 'x', ...more })
const OR = { operator: 'OR' }
const AND = { operator: 'AND' }

/** `a & b | c`, with groups in parentheses. */
function shape(node: FilterNode): string {
  if (node.kind === 'clause') return node.key
  if (!('of' in node)) return node.kind
  const inner = node.of.map(shape).join(node.kind === 'all' ? '&' : '|')
  return `(${inner})`
}

function problem(given: unknown): string {
  try {
    readFilters(given)
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    return (error as AppError).problems.map(({ title }) => title).join()
  }
  return 'nothing is wrong'
}

describe('how entries are joined', () => {
  test.each<[string, object[]]>([
    ['a', [tag('a')]],
    ['(a&b)', [tag('a'), tag('b')]],
    ['(a&b)', [tag('a'), AND, tag('b')]],
    ['(a|b)', [tag('a'), OR, tag('b')]],
    ['((a&b)|c)', [tag('a'), tag('b'), OR, tag('c')]],
    ['(a|(b&c))', [tag('a'), OR, tag('b'), AND, tag('c')]],
    ['((a&b)|(c&d)|e)', [tag('a'), AND, tag('b'), OR, tag('c'), tag('d'), OR, tag('e')]],
    ['(a&(b|c))', [tag('a'), { group: [tag('b'), OR, tag('c')] }]],
    ['((a|b)&(c|(d&e)))', [{ group: [tag('a'), OR, tag('b')] }, AND, { group: [tag('c'), OR, tag('d'), tag('e')] }]],
  ])('%s', (expected, given) => {
    expect(shape(readFilters(given).tree)).toBe(expected)
  })

  test('what is kept is what was given, without what means nothing, and reads the same again', () => {
    const given = [
      tag('a', { more: 1, hours_ago: '5' }),
      OR,
      { group: [{ field: 'country', relation: 'exists', value: null }] },
    ]
    const { tree, filters } = readFilters(given)
    expect(filters).toEqual([tag('a'), OR, { group: [{ field: 'country', relation: 'exists' }] }])
    expect(readFilters(filters)).toEqual({ tree, filters })
  })
})

const deep = (levels: number): object => (levels === 0 ? tag('a') : { group: [deep(levels - 1)] })

describe('what is refused names its entry', () => {
  test.each<[string, unknown]>([
    ['filters: must be a list', undefined],
    ['filters: must be a list', { 0: tag('a') }],
    ['filters: must have at least one filter', []],
    ['filters[0]: must be an object', ['tag']],
    ['filters[1]: must be an object', [tag('a'), null]],
    ['filters[0]: must be an object', [[tag('a')]]],
    ['filters[0]: field is required', [{}]],
    ['filters[0]: unknown field "colour"', [{ field: 'colour', relation: '=', value: 'red' }]],
    ['filters[0]: unknown field "constructor"', [{ field: 'constructor' }]],
    ['filters[0]: unknown field "5"', [{ field: 5 }]],
    ['filters[0]: unknown field "{"toString":1}"', [{ field: { toString: 1 } }]],
    [
      'filters[0]: field "rooted" has no relation "{"toString":[]}"; it has =, !=',
      [{ field: 'rooted', relation: { toString: [] } }],
    ],
    ['filters[1]: relation is required', [tag('a'), { field: 'country', value: 'DE' }]],
    [
      'filters[0]: field "country" has no relation ">"; it has =, !=, in_array, not_in_array, exists, not_exists',
      [{ field: 'country', relation: '>', value: 'DE' }],
    ],
    ['filters[0]: a list cannot begin with an operator', [OR, tag('a')]],
    ['filters[0]: a list cannot begin with an operator', [OR]],
    ['filters[1]: a list cannot end with an operator', [tag('a'), OR]],
    ['filters[2]: an operator cannot follow another one', [tag('a'), OR, AND, tag('b')]],
    ['filters[1]: operator must be "AND" or "OR"', [tag('a'), { operator: 'XOR' }, tag('b')]],
    ['filters[1]: cannot be both an operator and a filter', [tag('a'), { ...tag('b'), operator: 'OR' }]],
    ['filters[0]: cannot be both a group and a filter', [{ ...tag('b'), group: [tag('a')] }]],
    ['filters[0].group: must have at least one filter', [{ group: [] }]],
    ['filters[0].group: must be a list', [{ group: 'x' }]],
    ['filters[1].group[2]: a list cannot end with an operator', [tag('a'), { group: [tag('b'), tag('c'), OR] }]],
    [`filters${'[0].group'.repeat(10)}: groups can be nested at most 10 deep`, [deep(10)]],
    [
      'filters: must have at most 200 entries, operators and groups included',
      Array.from({ length: 201 }, () => tag('a')),
    ],
    [
      'filters: must have at most 200 entries, operators and groups included',
      [{ group: Array.from({ length: 200 }, () => tag('a')) }],
    ],
    ['filters[0]: key is required, as text', [tag('')]],
    ['filters[0]: key is required, as text', [{ field: 'tag', relation: 'exists', key: 5 }]],
    ['filters[0]: key must have at most 255 characters', [tag('🔔'.repeat(256))]],
    ['filters[0]: value is required', [tag('a', { value: undefined })]],
    ['filters[0]: value must be text or a number', [tag('a', { value: {} })]],
    ['filters[0]: value must have at most 1024 characters', [tag('a', { value: 'x'.repeat(1025) })]],
    ...['five', '', '1e5', '0x10', ' 5', 'Infinity', true, '9'.repeat(21)].map((value): [string, unknown] => [
      'filters[0]: value must be a decimal number of at most 20 digits before and after the point',
      [tag('a', { relation: '>', value })],
    ]),
    [
      'filters[0]: value must be a decimal number of at most 20 digits before and after the point',
      [tag('a', { relation: 'time_elapsed_gt', value: 'soon' })],
    ],
    [
      'filters[0]: value must have at most 20 values',
      [tag('a', { relation: 'in_array', value: Array.from({ length: 21 }, (_, i) => i).join() })],
    ],
    ['filters[0]: value must not have empty values', [tag('a', { relation: 'in_array', value: 'a,,b' })]],
    ['filters[0]: value must not have empty values', [tag('a', { relation: 'in_array', value: [] })]],
    ['filters[0]: value must be text or a number', [tag('a', { relation: 'in_array', value: [{}] })]],
    [
      'filters[0]: value must be a country code of two letters',
      [{ field: 'country', relation: '=', value: 'Germany' }],
    ],
    ['filters[0]: value must be a language code', [{ field: 'language', relation: 'in_array', value: 'en, !' }]],
    ['filters[0]: hours_ago is required', [{ field: 'last_session', relation: '>', value: '5' }]],
    ['filters[0]: hours_ago must be from 0 to 1000000', [{ field: 'first_session', relation: '>', hours_ago: '-1' }]],
    [
      'filters[0]: value must be a version: numbers with dots between them, such as 1.10.2',
      [{ field: 'app_version', relation: '>', value: '1.2-beta' }],
    ],
    ['filters[0]: radius is required', [{ field: 'location', lat: 1, long: 1 }]],
    ['filters[0]: lat must be from -90 to 90', [{ field: 'location', radius: 1, lat: 91, long: 1 }]],
    ['filters[0]: value must be an email address', [{ field: 'email', relation: '=', value: 'nobody' }]],
    ['filters[0]: value must be "true" or "false"', [{ field: 'rooted', relation: '=', value: 'perhaps' }]],
    [
      'filters[0]: value must be a device type: a number such as 0 for iOS, or a name such as "iOSPush"',
      [{ field: 'device_type', relation: '=', value: '12' }],
    ],
    ['filters[0]: name is required, as text', [{ field: 'event' }]],
    ['filters[0]: count must be a whole number', [{ field: 'event', name: 'x', count: 1.5 }]],
    ['filters[0]: within_days must be from 0.001 to 3650', [{ field: 'event', name: 'x', within_days: 0 }]],
  ])('%s', (expected, given) => {
    expect(problem(given)).toBe(expected)
  })

  test('and quotes little of what was given', () => {
    expect(problem([{ field: '🔔'.repeat(10_000) }])).toBe(`filters[0]: unknown field "${'🔔'.repeat(40)}"`)
  })
})

describe('what is taken', () => {
  test.each<object>([
    ...Object.keys(filterFields.tag.relations).map((relation) => tag('a', { relation, value: '5' })),
    tag('a', { value: 5 }),
    tag('a', { value: true }),
    tag('a', { relation: '<', value: -5.5 }),
    tag('a', { relation: 'in_array', value: ['a,b', 'c', 1] }),
    { field: 'country', relation: 'in_array', value: 'de, FR' },
    { field: 'last_session', relation: '<', hours_ago: '1.1' },
    { field: 'last_session', relation: '<', hours_ago: 24 },
    { field: 'location', radius: '1000', lat: '37.77', long: '-122.43' },
    { field: 'location', relation: '=', radius: 1000, lat: 0, long: 0 },
    { field: 'event', name: 'bought' },
    { field: 'event', name: 'bought', relation: '<=', count: '3', within_days: 30 },
    deep(9),
  ])('%j', (filter) => {
    expect(readFilters([filter]).filters).toEqual([filter])
  })

  test('two hundred entries', () => {
    expect(readFilters(Array.from({ length: 200 }, () => tag('a'))).filters).toHaveLength(200)
  })
})
