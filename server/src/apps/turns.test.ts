import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

/** Work that ends when it is told to. */
function stage(atOnce: number, mostOfOwner = 4) {
  const takeTurn = createTurns({ atOnce, mostOfOwner, retryAfterSeconds: 5 })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const add = (owner: string, name: string) =>
    takeTurn(owner, () => {
      begun.push(name)
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
    })
  const end = async (name: string) => {
    ends.get(name)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { add, begun, end }
}

test('an owner with many waits for itself, and another for at most one of them', async () => {
  const { add, begun, end } = stage(1)
  const all = [add('a', 'a1'), add('a', 'a2'), add('a', 'a3'), add('b', 'b1'), add('c', 'c1'), add('b', 'b2')]
  for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']) {
    await end('')
    expect(begun.at(-1)).toBe(name)
    await end(name)
  }
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'b2'])
})

test('an owner never has every place', async () => {
  const { add, begun, end } = stage(2)
  const all = [add('a', 'a1'), add('a', 'a2'), add('b', 'b1')]
  await end('')
  expect(begun).toEqual(['a1', 'b1'])
  for (const name of ['b1', 'a1', 'a2']) await end(name)
  expect(begun).toEqual(['a1', 'b1', 'a2'])
  await Promise.all(all)
})

test('an owner with too many is told to come back, and no other is', async () => {
  const { add, end } = stage(1, 2)
  const all = [add('a', 'a1'), add('a', 'a2')]
  await expect(add('a', 'a3')).rejects.toMatchObject({ kind: 'limited', retryAfterSeconds: 5 })
  all.push(add('b', 'b1'))
  for (const name of ['a1', 'b1', 'a2']) await end(name)
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'b1'])
  const later = add('a', 'a4')
  await end('')
  await end('a4')
  expect(await later).toBe('a4')
})

test('what fails gives its place to the next', async () => {
  const takeTurn = createTurns({ atOnce: 1, mostOfOwner: 2, retryAfterSeconds: 5 })
  await expect(takeTurn('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(await takeTurn('a', async () => 'whole')).toBe('whole')
})
