import { expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import type { NodeOf } from './kinds.ts'
import { pickNumber } from './pick.ts'
import { pickBranch } from './split-range.ts'

const split = (weights: number[], randomize = false): NodeOf<'split_range'> => ({
  kind: 'split_range',
  id: 'a node',
  randomize_on_entry: randomize,
  branches: weights.map((weight, n) => ({ id: `branch ${n}`, weight, nodes: [] })),
})

test('the same names draw the same number', () => {
  expect(pickNumber('a', 'b')).toBe(pickNumber('a', 'b'))
  expect(pickNumber('a', 'b')).not.toBe(pickNumber('b', 'a'))
})

test('by their weights', () => {
  const node = split([10, 0, 60, 30])
  const counts = new Map<string, number>()
  for (let n = 0; n < 20_000; n++) {
    const branch = pickBranch('a journey', node, { userId: `user ${n}`, id: 'a run' })
    counts.set(branch, (counts.get(branch) ?? 0) + 1)
  }
  expect(counts.get('branch 1')).toBeUndefined()
  for (const [n, share] of [
    [0, 0.1],
    [2, 0.6],
    [3, 0.3],
  ] as const)
    expect((counts.get(`branch ${n}`) ?? 0) / 20_000).toBeCloseTo(share, 1)
})

test('a user stays on a branch, unless every run draws anew', () => {
  const drawn = (randomize: boolean) =>
    new Set(
      Array.from({ length: 50 }, () =>
        pickBranch('a journey', split([50, 50], randomize), { userId: 'a user', id: newId() }),
      ),
    )
  expect(drawn(false).size).toBe(1)
  expect(drawn(true).size).toBe(2)
})
