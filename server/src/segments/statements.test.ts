// The statements that filters become are not in the sources, so they are made here, in every form, and held to the rules
// that all others keep.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { filterOf, filters, NOW } from '../../test/segments/generate.ts'
import { readCatalogue } from '../../test/sql-rules/catalogue.ts'
import { GLOBAL_TABLES } from '../../test/sql-rules/exceptions.ts'
import { knownTables } from '../../test/sql-rules/schema-rules.ts'
import { checkStatement, type KnownTables } from '../../test/sql-rules/statement-rules.ts'
import { newId } from '../lib/ids.ts'
import type { Sql } from '../storage/sql.ts'
import {
  countByTypeStatement,
  countStatement,
  matchSubscriptionsStatement,
  matchUsersStatement,
  pageStatement,
  restrictToReachable,
  selectAudience,
  usersStatement,
} from './audience.ts'
import { filterFields } from './filters/fields.ts'
import { readFilters } from './filters/read-filters.ts'
import { audienceChannels, type FilterNode } from './filters/tree.ts'
import { createTagIndex, INDEXABLE_KEY, quoteKey } from './index-store.ts'

let database: TestDatabase
let known: KnownTables
beforeAll(async () => {
  database = await testDatabase()
  known = knownTables(await readCatalogue(database.db), Object.keys(GLOBAL_TABLES))
})
afterAll(() => database.close())

const scope = { appId: newId(), now: NOW }
const range = { after: newId(), upTo: newId() }

const statementsOf = (node: FilterNode): Sql[] => [
  selectAudience(node, scope),
  countStatement(node, scope),
  countByTypeStatement(node, scope),
  pageStatement(node, scope, range, 10),
  matchSubscriptionsStatement([node, { kind: 'all', of: [] }], scope, [newId()]),
  matchUsersStatement([node, { kind: 'all', of: [] }], scope, [newId()]),
  usersStatement(node, undefined, scope, 10),
  usersStatement(node, { kind: 'any', of: [node] }, scope, 10),
  ...audienceChannels.map((channel) => countStatement(restrictToReachable(node, channel), scope)),
  countStatement({ kind: 'none', of: [node, { kind: 'users', ids: [newId()] }] }, scope),
]

function expectRules(node: FilterNode) {
  for (const { text, values } of statementsOf(node)) {
    expect(checkStatement(text, known)).toEqual([])
    // Every value has its place, and every place its value.
    const places = new Set([...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)))
    expect([...places].sort((a, b) => a - b)).toEqual(values.map((_, i) => i + 1))
  }
}

test('the generated filters have every field and every relation', () => {
  expect(Object.keys(filterOf).sort()).toEqual(Object.keys(filterFields).sort())
  for (const [field, { relations }] of Object.entries(filterFields)) {
    if (field === 'location') continue
    const made = new Set(
      fc
        .sample(filterOf[field] as never, { numRuns: 500, seed: 1 })
        .map((it) => (it as { relation?: string }).relation),
    )
    made.delete(undefined)
    expect([...made].sort(), field).toEqual(Object.keys(relations).sort())
  }
})

test.each(Object.entries(filterOf))('statements of %s keep the rules', (_, filter) => {
  fc.assert(
    fc.property(filter, (it) => expectRules(readFilters([it]).tree)),
    { numRuns: 40 },
  )
})

test('statements of whole lists keep the rules', () => {
  fc.assert(
    fc.property(filters, (list) => expectRules(readFilters(list).tree)),
    { numRuns: 50 },
  )
})

test('nothing that a customer wrote is in the text', () => {
  const mark = 'xyzzy'
  const list = [
    { field: 'tag', key: mark, relation: '=', value: mark },
    { field: 'tag', key: mark, relation: 'in_array', value: `${mark},${mark}2` },
    { field: 'tag', key: mark, relation: '>', value: '424242' },
    { field: 'external_user_id', relation: '=', value: mark },
    { field: 'bought_sku', key: mark, relation: '>', value: '424242' },
    { field: 'app_version', relation: '=', value: mark },
    { field: 'event', name: mark, count: 424242 },
    { field: 'location', radius: 424242, lat: 42.4242, long: 42.4242 },
  ]
  for (const { text } of statementsOf(readFilters(list).tree)) expect(text).not.toMatch(/xyzzy|4242/)
})

describe('keys of indexes', () => {
  test.each(['plan', 'A-b_9', 'x'.repeat(64)])('%j is quoted', (key) => {
    expect(quoteKey(key)).toBe(`'${key}'`)
  })

  test.each(["a'b", 'a b', '', 'x'.repeat(65), 'ключ', 'a"', 'a\\', 'a\n', "'; drop table users; --", '$1'])(
    '%j is refused',
    (key) => {
      expect(() => quoteKey(key)).toThrow('cannot be indexed')
      expect(() => createTagIndex(database.db, key)).toThrow('cannot be indexed')
      expect(key).not.toMatch(new RegExp(INDEXABLE_KEY))
    },
  )
})
