import { expect, test } from 'vitest'
import { createPermits } from './permits.ts'

test('bulk takes three quarters at most, direct all that is left, and each provider has its own', async () => {
  const permits = createPermits(20)
  expect(await permits.take('apns', 'bulk', 100)).toBe(15)
  expect(await permits.take('apns', 'direct', 3)).toBe(3)
  expect(await permits.take('apns', 'direct', 3)).toBe(2)
  expect(await permits.take('fcm', 'bulk', 4)).toBe(4)
  expect(permits.stats()).toEqual({ inFlight: 24, waiting: 0, most: 20 })
})

test('who waits is served in turn, direct first', async () => {
  const permits = createPermits(4)
  expect(await permits.take('apns', 'direct', 4)).toBe(4)
  const served: string[] = []
  const waiting = (['bulk', 'direct', 'bulk'] as const).map((lane, i) =>
    permits.take('apns', lane, 1).then((count) => void served.push(`${lane} ${i} ${count}`)),
  )
  expect(permits.stats().waiting).toBe(3)
  permits.give('apns', 'direct', 4)
  await Promise.all(waiting)
  expect(served).toEqual(['direct 1 1', 'bulk 0 1', 'bulk 2 1'])
})
