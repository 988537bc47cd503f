import { expect, test } from 'vitest'
import { createConcealTiming, TIMING_STEP_MS } from './conceal-timing.ts'

/** A clock that the work itself moves on, and what was waited. */
function setUp() {
  let ms = 5_000
  const waits: number[] = []
  const concealTiming = createConcealTiming({ leaseMs: () => ms }, async (given) => waits.push(given))
  const work = (tookMs: number) => async () => {
    ms += tookMs
    return tookMs
  }
  return { concealTiming, work, waits }
}

test('answers that took different times are given after the same', async () => {
  const { concealTiming, work, waits } = setUp()
  for (const tookMs of [0, 3, 99]) expect(await concealTiming(work(tookMs))).toBe(tookMs)
  expect(waits).toEqual([TIMING_STEP_MS, TIMING_STEP_MS - 3, TIMING_STEP_MS - 99])
})

test('what takes longer waits for the next step', async () => {
  const { concealTiming, work, waits } = setUp()
  await concealTiming(work(TIMING_STEP_MS + 30))
  expect(waits).toEqual([TIMING_STEP_MS - 30])
})

test('a refusal is held as long as an answer', async () => {
  const { concealTiming, waits } = setUp()
  await expect(concealTiming(async () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(waits).toEqual([TIMING_STEP_MS])
})
