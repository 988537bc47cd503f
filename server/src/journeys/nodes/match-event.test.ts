import { describe, expect, test } from 'vitest'
import { matchesEntry, matchesEvent } from './match-event.ts'
import type { EventAttribute } from './node.ts'

const properties = {
  plan: 'gold',
  price: 12.5,
  count: '7',
  at: '2030-06-03T12:00:00Z',
  seen: 1_906_718_400,
  isNew: true,
  empty: null,
  cart: { total: 99, items: [{ sku: 'a' }] },
  'cart.total': 1,
}

const holds = (key: string, operator: EventAttribute['operator'], value?: string) =>
  matchesEvent(
    { name: 'bought', attributes: [[{ key, operator, ...(value !== undefined && { value }) }]] },
    { name: 'bought', properties },
  )

describe('one attribute', () => {
  test.each([
    ['plan', 'equal', 'gold', true],
    ['plan', 'equal', 'Gold', false],
    ['plan', 'is', 'gold', true],
    ['plan', 'is_not', 'gold', false],
    ['plan', 'not_equal', 'silver', true],
    ['price', 'equal', '12.50', true],
    ['count', 'equal', '7.0', true],
    ['isNew', 'is', 'true', true],
    ['price', 'less', '13', true],
    ['price', 'less', '12.5', false],
    ['price', 'less_or_equal', '12.5', true],
    ['count', 'greater', '6', true],
    ['count', 'greater', '7', false],
    ['count', 'greater_or_equal', '7', true],
    ['plan', 'greater', '1', false],
    ['plan', 'exists', undefined, true],
    ['empty', 'exists', undefined, false],
    ['missing', 'not_exists', undefined, true],
    ['missing', 'not_equal', 'x', true],
    ['missing', 'equal', '', false],
    ['missing', 'less', '3', false],
    ['at', 'before', '2030-06-04', true],
    ['at', 'after', '2030-06-04', false],
    ['seen', 'after', '2030-06-01T00:00:00Z', true],
    ['plan', 'before', '2030-06-04', false],
    ['cart.total', 'equal', '1', true],
    ['cart.items', 'equal', '[{"sku":"a"}]', true],
    ['__proto__', 'exists', undefined, false],
    ['cart.constructor', 'exists', undefined, false],
  ] as const)('%s %s %s: %s', (key, operator, value, expected) => {
    expect(holds(key, operator, value)).toBe(expected)
  })
})

test('the name, and all of a group', () => {
  const plan: EventAttribute = { key: 'plan', operator: 'is', value: 'gold' }
  const dear: EventAttribute = { key: 'price', operator: 'greater', value: '100' }
  expect(matchesEvent({ name: 'sold', attributes: [] }, { name: 'bought', properties })).toBe(false)
  expect(matchesEvent({ name: 'bought', attributes: [] }, { name: 'bought', properties })).toBe(true)
  expect(matchesEvent({ name: 'bought', attributes: [[plan]] }, { name: 'bought', properties })).toBe(true)
  expect(matchesEvent({ name: 'bought', attributes: [[plan, dear]] }, { name: 'bought', properties })).toBe(false)
})

test('the same value as the entry event had', () => {
  const pairs = [{ key: 'order', entry_key: 'id' }]
  expect(matchesEntry(pairs, { order: 7 }, { id: '7' })).toBe(true)
  expect(matchesEntry(pairs, { order: 7 }, { id: '8' })).toBe(false)
  expect(matchesEntry(pairs, {}, { id: '8' })).toBe(false)
  expect(matchesEntry(pairs, { order: 7 }, {})).toBe(false)
  expect(matchesEntry([], {}, {})).toBe(true)
})
