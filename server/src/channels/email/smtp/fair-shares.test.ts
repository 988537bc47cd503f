import { expect, test } from 'vitest'
import type { TrafficSource } from '../../channel.ts'
import { createFairShares } from './fair-shares.ts'

type Task = { source: TrafficSource; n: number }

const tasksOf = (appId: string, lane: TrafficSource['lane'], count: number): Task[] =>
  Array.from({ length: count }, (_, n) => ({ source: { appId, lane }, n }))

function filled(isShared: boolean, connections: number, ...waiting: Task[][]) {
  const shares = createFairShares<Task>(isShared)
  for (const tasks of waiting) for (const task of tasks) shares.add(task)
  return { shares, connections, taken: takeAll(shares, connections) }
}

function takeAll(shares: ReturnType<typeof createFairShares<Task>>, connections: number): string[] {
  const taken: string[] = []
  for (let task = shares.take(connections); task; task = shares.take(connections))
    taken.push(`${task.source.appId} ${task.source.lane}`)
  return taken
}

const tally = (taken: string[]) =>
  Object.fromEntries([...Map.groupBy(taken, (it) => it)].map(([k, v]) => [k, v.length]))

test.each([
  [5, { bulk: 2, direct: 1 }, { bulk: 1, direct: 1 }],
  [10, { bulk: 5, direct: 1 }, { bulk: 3, direct: 1 }],
  [20, { bulk: 10, direct: 1 }, { bulk: 5, direct: 3 }],
  [100, { bulk: 50, direct: 1 }, { bulk: 25, direct: 23 }],
])('of %i connections, all mail of one app hanging leaves another half its bulk, and direct', (connections, a, b) => {
  const { shares, taken } = filled(true, connections, tasksOf('a', 'bulk', 300))
  expect(taken).toHaveLength(a.bulk)
  for (const task of tasksOf('a', 'direct', 300)) shares.add(task)
  expect(takeAll(shares, connections)).toHaveLength(a.direct)
  for (const task of tasksOf('b', 'bulk', 300)) shares.add(task)
  expect(takeAll(shares, connections)).toHaveLength(b.bulk)
  for (const task of tasksOf('b', 'direct', 300)) shares.add(task)
  expect(takeAll(shares, connections)).toHaveLength(b.direct)
})

test.each([2, 3, 4, 5, 10, 50])('of %i connections, direct mail of one app leaves one for another', (connections) => {
  const { shares } = filled(true, connections, tasksOf('a', 'direct', 300))
  for (const task of [...tasksOf('a', 'bulk', 300), ...tasksOf('b', 'direct', 1)]) shares.add(task)
  expect(takeAll(shares, connections)).toContain('b direct')
})

test('where nobody else is, bulk leaves a quarter, and direct takes all', () => {
  expect(tally(filled(false, 8, tasksOf('a', 'bulk', 20)).taken)).toEqual({ 'a bulk': 6 })
  expect(tally(filled(false, 8, tasksOf('a', 'direct', 20)).taken)).toEqual({ 'a direct': 8 })
  expect(tally(filled(false, 1, tasksOf('a', 'bulk', 20)).taken)).toEqual({ 'a bulk': 1 })
  expect(tally(filled(true, 1, tasksOf('a', 'bulk', 20)).taken)).toEqual({ 'a bulk': 1 })
})

test('direct goes first, and apps take turns', () => {
  const bulk = ['a', 'b', 'c'].flatMap((appId) => tasksOf(appId, 'bulk', 10))
  expect(filled(true, 10, bulk, tasksOf('c', 'direct', 1)).taken).toEqual([
    'c direct',
    ...['a bulk', 'b bulk', 'c bulk'],
    ...['a bulk', 'b bulk', 'c bulk'],
    ...['a bulk', 'b bulk'],
  ])
})

test('a connection goes on with the same source until it is somebody else’s turn', () => {
  const { shares } = filled(true, 2, tasksOf('a', 'bulk', 4))
  const source: TrafficSource = { appId: 'a', lane: 'bulk' }
  expect(shares.takeNext(source, 2)).toEqual({ source, n: 1 })
  const [other] = tasksOf('b', 'direct', 1) as [Task]
  shares.add(other)
  expect(shares.takeNext(source, 2)).toBeUndefined()
  expect(shares.take(2)).toBe(other)
  shares.release(other.source)
  expect(shares.takeNext(source, 2)).toEqual({ source, n: 2 })
})

test('no more connections are wanted than may be held', () => {
  const { shares } = filled(true, 10, tasksOf('a', 'bulk', 300))
  expect(shares.wanted(10)).toBe(0)
  for (const task of tasksOf('a', 'direct', 300)) shares.add(task)
  expect(shares.wanted(10)).toBe(1)
  expect(shares.clear()).toHaveLength(595)
  expect(shares.wanted(10)).toBe(0)
})
