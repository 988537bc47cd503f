import { beforeEach, expect, test } from 'vitest'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { createProviderThrottle, type ProviderThrottle } from './provider-throttle.ts'

let clock: VirtualClock
let lanes: ProviderThrottle
beforeEach(() => {
  clock = virtualClock()
  lanes = createProviderThrottle(clock)
})

const slow = (lane = 'google') => lanes.slowDown(lane, clock.now().getTime())

/** Offers ten times as many as may go, and tells how many went. */
function run(seconds: number, perSecond: number, lane = 'google'): number {
  let went = 0
  for (let n = 0; n < seconds * perSecond; n++) {
    if (lanes.reserve(lane) === undefined) went++
    clock.advance({ ms: 1000 / perSecond })
  }
  return went
}

test('a lane goes as fast as it can until its provider asks us to slow down; then at half of that', () => {
  expect(run(20, 20)).toBe(400)
  slow()
  const went = run(10, 100)
  expect(went).toBeGreaterThanOrEqual(95)
  expect(went).toBeLessThanOrEqual(110)
  expect(run(10, 100, 'yahoo_us')).toBe(1_000)
})

test('each time it asks it is half again, and never nothing', () => {
  run(20, 20)
  slow()
  run(1, 100)
  slow()
  const went = run(10, 100)
  expect(went).toBeGreaterThanOrEqual(45)
  expect(went).toBeLessThanOrEqual(60)
  for (let n = 0; n < 30; n++) {
    clock.advance({ seconds: 1 })
    slow()
  }
  expect(run(120, 1)).toBeGreaterThanOrEqual(2)
})

test('many refusals at once are one', () => {
  run(20, 20)
  const beganMs = clock.now().getTime()
  clock.advance({ ms: 100 })
  for (let n = 0; n < 10; n++) lanes.slowDown('google', beganMs)
  expect(run(10, 100)).toBeGreaterThanOrEqual(95)
})

test('it recovers a little every second: all of it in five minutes, and free after some more', () => {
  run(20, 20)
  slow()
  expect(run(300, 30)).toBeGreaterThan(300 * 14)
  const rate = run(10, 100) / 10
  expect(rate).toBeGreaterThan(19)
  expect(rate).toBeLessThan(23)
  clock.advance({ minutes: 15 })
  expect(run(1, 500)).toBe(500)
})

test('those that must wait are told different times, at the pace of the lane, and may go then', () => {
  run(20, 20)
  slow()
  const waits = Array.from({ length: 1_000 }, () => lanes.reserve('google') as number)
  expect(waits).toEqual(waits.toSorted((a, b) => a - b))
  expect(waits[9]).toBeGreaterThan(900)
  expect(waits[9]).toBeLessThan(1_100)
  // A thousand at 10 a second would be 100 seconds: it has become more by then.
  expect(waits[999]).toBeGreaterThan(70_000)
  expect(waits[999]).toBeLessThan(90_000)
  let passedMs = 0
  for (const wait of waits) {
    clock.advance({ ms: wait - passedMs })
    passedMs = wait
    expect(lanes.reserve('google')).toBeUndefined()
  }
})

test('looking takes no place', () => {
  run(20, 20)
  slow()
  clock.advance({ ms: 200 })
  expect(lanes.peekWaitMs('google')).toBeUndefined()
  expect(lanes.peekWaitMs('google')).toBeUndefined()
  expect(lanes.reserve('google')).toBeUndefined()
})

test('what was not used is not saved up', () => {
  run(20, 20)
  slow()
  clock.advance({ seconds: 60 })
  let went = 0
  while (lanes.reserve('google') === undefined) went++
  expect(went).toBeLessThanOrEqual(13)
})
