import { expect, test } from 'vitest'
import { scaleCurve, secondsUntil } from './curve.ts'

const curve = [
  { seconds: 100, share: 0.2 },
  { seconds: 200, share: 0.2 },
  { seconds: 300, share: 0.6 },
]

test.each([
  [0, 0],
  [0.1, 50],
  [0.2, 200],
  [0.4, 250],
  [0.6, undefined],
  [0.99, undefined],
])('whoever drew %d does it after %s seconds', (drawn, seconds) => {
  const found = secondsUntil(curve, drawn)
  if (seconds === undefined) expect(found).toBeUndefined()
  else expect(found).toBeCloseTo(seconds)
})

test('where nobody did it, nobody does', () => {
  expect(secondsUntil([], 0)).toBeUndefined()
  expect(secondsUntil(scaleCurve(curve, 0), 0)).toBeUndefined()
})

test('as many do it within a time as did it within that time', () => {
  const drawn = Array.from({ length: 1_000 }, (_, n) => n / 1_000)
  const within = (seconds: number) =>
    drawn.filter((it) => (secondsUntil(curve, it) ?? Number.POSITIVE_INFINITY) < seconds)
  expect([100, 200, 300].map((seconds) => within(seconds).length)).toEqual([200, 200, 600])
})
