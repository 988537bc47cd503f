import { expect, test } from 'vitest'
import { virtualClock } from '../../lib/clock.ts'
import { createTrackingGuard } from './tracking-guard.ts'

test('nobody follows several links of one email within a second', () => {
  const clock = virtualClock()
  const watch = createTrackingGuard(clock)
  const click = (email: string, url: string) => watch.isTooFast(email, url, null)
  expect([click('a', '1'), click('a', '1'), click('b', '2')]).toEqual([false, false, false])
  clock.advance({ ms: 999 })
  expect([click('a', '2'), click('b', '2')]).toEqual([true, false])
  // Across the moment at which what is remembered changes hands.
  clock.advance({ ms: 500 })
  expect(click('a', '3')).toBe(true)
  clock.advance({ ms: 1_000 })
  expect([click('a', '1'), click('b', '1')]).toEqual([false, false])
})

test('nobody clicks within two seconds of delivery', () => {
  const clock = virtualClock()
  const watch = createTrackingGuard(clock)
  const deliveredAt = clock.now()
  clock.advance({ ms: 1_999 })
  expect(watch.isTooFast('a', '1', deliveredAt)).toBe(true)
  clock.advance({ ms: 1 })
  expect(watch.isTooFast('b', '1', deliveredAt)).toBe(false)
})
