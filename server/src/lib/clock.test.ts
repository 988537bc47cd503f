import { expect, test } from 'vitest'
import { systemClock, virtualClock } from './clock.ts'

test('a virtual clock stands still until it is stepped, business and lease time apart', () => {
  const clock = virtualClock('2030-01-01T09:00:00Z')
  const lease = clock.leaseMs()
  clock.advance({ days: 3, hours: 1 })
  expect(clock.now().toISOString()).toBe('2030-01-04T10:00:00.000Z')
  expect(clock.leaseMs()).toBe(lease)
  clock.advanceLease({ seconds: 30 })
  expect(clock.leaseMs()).toBe(lease + 30_000)
  expect(clock.now().toISOString()).toBe('2030-01-04T10:00:00.000Z')
})

test('the system clock takes the time of the database, read at the middle of the round trip', () => {
  const clock = systemClock()
  const local = performance.now()
  // The database is an hour ahead; the question took 20 ms, so its answer was made 10 ms after we asked.
  const ahead = clock.leaseMs() + 3_600_000
  clock.anchor(ahead + 10, local, local + 20)
  expect(Math.abs(clock.leaseMs() - ahead)).toBeLessThan(1_000)
  expect(clock.driftMs()).toBeLessThan(-3_598_000)
})

test('the system clock never goes back between two anchors', () => {
  const clock = systemClock()
  let last = clock.leaseMs()
  for (let i = 0; i < 10_000; i++) {
    const next = clock.leaseMs()
    expect(next).toBeGreaterThanOrEqual(last)
    last = next
  }
})
