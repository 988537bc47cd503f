import { expect, test } from 'vitest'
import { createFairSlots, QueueFull } from './fair-slots.ts'

/** Work that ends when the test says so. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return { run: () => promise, end: () => resolve('done'), fail: () => reject(new Error('failed')) }
}

/** Until all that can start has started. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('an owner whose work does not end leaves a slot to the others', async () => {
  const slots = createFairSlots({ slots: 3 })
  const hostile = Array.from({ length: 10 }, work)
  const all = hostile.map(({ run }) => slots.run('hostile', run))
  await settled()
  expect(slots.stats()).toEqual({ running: 2, waiting: 8 })
  for (let n = 0; n < 5; n++) expect(await slots.run('other', async () => n)).toBe(n)
  for (const { end } of hostile) end()
  await Promise.all(all)
  expect(slots.stats()).toEqual({ running: 0, waiting: 0 })
})

test('a single slot is shared in turns', async () => {
  const slots = createFairSlots({ slots: 1 })
  const order: string[] = []
  const note = (name: string) => async () => {
    order.push(name)
  }
  const first = work()
  const all = [slots.run('a', first.run)]
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) all.push(slots.run(name[0] as string, note(name)) as never)
  first.end()
  await Promise.all(all)
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('who holds nothing goes before who holds something, whoever came first', async () => {
  const slots = createFairSlots({ slots: 3 })
  const [one, two, three, more, other] = [work(), work(), work(), work(), work()]
  const all = [slots.run('a', one.run), slots.run('a', two.run), slots.run('b', three.run)]
  const order: string[] = []
  all.push(
    slots.run('b', () => {
      order.push('b')
      return more.run()
    }),
    slots.run('c', () => {
      order.push('c')
      return other.run()
    }),
  )
  one.end()
  await settled()
  expect(order).toEqual(['c'])
  for (const { end } of [two, three, more, other]) end()
  await Promise.all(all)
})

test('only so much of one owner waits; what could start at once is never refused', async () => {
  const slots = createFairSlots({ slots: 3, maxWaitingPerOwner: 2 })
  const hostile = Array.from({ length: 6 }, work)
  const all = Promise.allSettled(hostile.map(({ run }) => slots.run('hostile', run)))
  await settled()
  expect(slots.stats()).toEqual({ running: 2, waiting: 2 })
  expect(await slots.run('other', async () => 'answered')).toBe('answered')
  for (const { end } of hostile) end()
  const outcomes = await all
  expect(outcomes.map(({ status }) => status)).toEqual([...Array(4).fill('fulfilled'), 'rejected', 'rejected'])
  expect((outcomes[5] as PromiseRejectedResult).reason).toBeInstanceOf(QueueFull)
})

test('work that is no longer wanted leaves the queue and never runs', async () => {
  const slots = createFairSlots({ slots: 1 })
  const first = work()
  const leaving = new AbortController()
  let hasRun = false
  const running = slots.run('a', first.run)
  const waiting = slots.run(
    'a',
    async () => {
      hasRun = true
    },
    leaving.signal,
  )
  leaving.abort(new Error('left'))
  await expect(waiting).rejects.toThrow('left')
  expect(slots.stats()).toEqual({ running: 1, waiting: 0 })
  first.end()
  await running
  await expect(slots.run('a', async () => 'late', leaving.signal)).rejects.toThrow('left')
  expect(hasRun).toBe(false)
  expect(slots.stats()).toEqual({ running: 0, waiting: 0 })
})

test('failed work gives its slot back', async () => {
  const slots = createFairSlots({ slots: 1 })
  const failing = work()
  const failed = slots.run('a', failing.run)
  failing.fail()
  await expect(failed).rejects.toThrow('failed')
  expect(await slots.run('a', async () => 'next')).toBe('next')
})
