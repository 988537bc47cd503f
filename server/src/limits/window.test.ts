import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { takeAll } from './take.ts'
import { emptyWindow, LOCAL_GRAIN, mergeLogs, SHARED_GRAIN, type Window, waitMs, windowOf } from './window.ts'

/** The times of all that were let in, one by one. */
type Model = number[]
const inWindow = (model: Model, now: number, windowMs: number) => {
  let count = 0
  for (let i = model.length - 1; i >= 0 && (model[i] as number) > now - windowMs; i--) count++
  return count
}

const countersOf = (window: Window) => ({ find: () => window, open: () => window })
const copyOf = (window: Window): Window => ({ ...window, log: [...window.log] })

const allowances = [1, 10, 100, 150, 1_000, 6_000].flatMap((limit) => [
  { limit, windowMs: 1_000 },
  ...(limit === 1 ? [{ limit: 60, windowMs: 60_000 }] : []),
])

/** Pauses and how many knock after each: bursts in one instant, trickles, and gaps around the window's edge. */
const trafficFor = ({ limit, windowMs }: { limit: number; windowMs: number }) =>
  fc.array(
    fc.record({
      pauseMs: fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: windowMs / 50, noNaN: true }),
        fc.double({ min: 0, max: windowMs, noNaN: true }),
        fc.constantFrom(windowMs - 1, windowMs, windowMs + 1),
      ),
      knocks: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: Math.ceil(limit / 7) + 1 }), fc.constant(limit + 1)),
    }),
    { minLength: 20, maxLength: 40 },
  )

describe.each([
  { name: 'in memory', grain: LOCAL_GRAIN, refusesFrom: 0.99 },
  { name: 'in the database', grain: SHARED_GRAIN, refusesFrom: 0.9 },
])('the window $name', ({ grain, refusesFrom }) => {
  test.each(allowances)('agrees with a list of all times: $limit in $windowMs ms', (allowance) => {
    const { limit, windowMs } = allowance
    const exact = limit <= grain.exactUpTo
    let decisions = 0
    let refusals = 0
    fc.assert(
      fc.property(trafficFor(allowance), (traffic) => {
        const window = emptyWindow()
        const counters = countersOf(window)
        const model: Model = []
        let now = 1_900_000_000_000.25
        for (const { pauseMs, knocks } of traffic) {
          now += pauseMs
          let accepted = inWindow(model, now, windowMs)
          for (let knock = 0; knock < knocks; knock++) {
            decisions++
            const seconds = takeAll(counters, [{ key: '', ...allowance }], now, grain)
            if (seconds === 0) {
              model.push(now)
              accepted++
              // A window that ends at an acceptance is as full as any.
              if (accepted > limit) throw new Error(`${accepted} in one window`)
            } else {
              refusals++
              if (accepted < (exact ? limit : refusesFrom * limit)) throw new Error(`refused at ${accepted}`)
              if (!Number.isInteger(seconds) || seconds < 1) throw new Error(`told to wait ${seconds}`)
              if (seconds > Math.ceil(windowMs / 1000)) throw new Error(`told to wait ${seconds}`)
              if (knock === knocks - 1) {
                const later = takeAll(
                  countersOf(copyOf(window)),
                  [{ key: '', ...allowance }],
                  now + seconds * 1000,
                  grain,
                )
                if (later !== 0) throw new Error('the wait was not enough')
              }
            }
          }
          if (window.log.length > 600) throw new Error(`${window.log.length} numbers kept`)
        }
      }),
      { numRuns: limit >= 1_000 ? 15 : limit === 1 ? 400 : 100 },
    )
    expect(decisions).toBeGreaterThan(10_000)
    expect(refusals).toBeGreaterThan(1_000)
  })
})

test('waiting one second less than told would not be enough when the limit is exact', () => {
  const window = windowOf([10_000, 1])
  expect(takeAll(countersOf(window), [{ key: '', limit: 1, windowMs: 60_000 }], 10_500, LOCAL_GRAIN)).toBe(60)
  expect(takeAll(countersOf(window), [{ key: '', limit: 1, windowMs: 60_000 }], 69_999, LOCAL_GRAIN)).toBe(1)
  expect(takeAll(countersOf(window), [{ key: '', limit: 1, windowMs: 60_000 }], 70_000, LOCAL_GRAIN)).toBe(0)
})

test('a limit that was lowered is waited for until enough has aged', () => {
  const window = windowOf([0, 1, 100, 1, 200, 1, 300, 1])
  expect(waitMs(window, 400, { limit: 2, windowMs: 1_000 })).toBe(800)
})

test('a clock that is set back by hours shuts nobody out for hours', () => {
  const window = windowOf([7_200_000, 1])
  const seconds = takeAll(countersOf(window), [{ key: '', limit: 1, windowMs: 1_000 }], 5_000, LOCAL_GRAIN)
  expect(seconds).toBe(1)
  expect(takeAll(countersOf(window), [{ key: '', limit: 1, windowMs: 1_000 }], 6_000, LOCAL_GRAIN)).toBe(0)
})

test('a clock that is a little behind another node’s lets nobody in twice', () => {
  const window = windowOf([1_005, 10])
  expect(takeAll(countersOf(window), [{ key: '', limit: 10, windowMs: 1_000 }], 1_000, LOCAL_GRAIN)).toBe(2)
})

test('two logs become one in the order of time', () => {
  expect(mergeLogs([1, 5, 4, 6], [2, 7, 4, 8, 9, 1])).toEqual([1, 5, 2, 7, 4, 6, 4, 8, 9, 1])
  expect(mergeLogs([], [1, 1])).toEqual([1, 1])
})
