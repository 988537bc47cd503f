import { describe, expect, test } from 'vitest'
import { nextTurn } from '../../lib/event-loop.ts'
import { JsonScan } from '../../lib/scan-json.ts'
import { parseBody } from './parse.ts'

const MB = 1_048_576
const limits = { maxDepth: 32, maxKeys: 2_000, maxValues: 100_000 }

describe('parsing', () => {
  test('of what is small is done at once', () => {
    expect(parseBody(Buffer.from(`{"a":"${'x'.repeat(65_528)}"}`), limits)).toEqual({ a: 'x'.repeat(65_528) })
  })

  test.each([
    ['blanks', `{"a":1${' '.repeat(5 * MB - 7)}}`, 20],
    ['numbers', `[${Array(99_000).fill('1').join(',')}]`.padEnd(5 * MB), 20],
    ['escapes', JSON.stringify({ a: Array(90_000).fill('\u00e9"\n') }).replaceAll('\u00e9', '\\u00e9'), 5],
  ])('of 5 MB of %s gives others a turn after each slice', async (_, text, least) => {
    let pauses = 0
    const pause = async () => {
      pauses++
    }
    expect(await parseBody(Buffer.from(text), limits, pause)).toEqual(JSON.parse(text))
    expect(pauses).toBeGreaterThanOrEqual(least)
  })

  test.each([
    ['empty lists', '[],'],
    ['empty objects', '{},'],
    ['numbers', '1,'],
    ['texts', '"",'],
    ['true', 'true,'],
    ['null', 'null,'],
  ])('stops at too many %s, before one of them is made', async (_, item) => {
    let pauses = 0
    const text = `[${item.repeat(Math.floor((5 * MB) / item.length))}1]`
    const parsed = parseBody(Buffer.from(text), limits, async () => {
      pauses++
    })
    await expect(parsed).rejects.toThrow('The body has more than 100000 values')
    // 100,000 values of 5 characters each are two slices.
    expect(pauses).toBeLessThanOrEqual(3)
  })
})

describe('a scan', () => {
  test('counts values as JSON.parse makes them, wherever it is interrupted', () => {
    const text = JSON.stringify({ a: [1, -2.5e3, true, false, null, 'x:y,[{"\\', {}, []], '"b"': { c: [[], [0]] } })
    const count = (value: unknown): number =>
      1 +
      (value !== null && typeof value === 'object' ? Object.values(value).reduce((sum, it) => sum + count(it), 0) : 0)
    const values = count(JSON.parse(text))
    for (let slice = 1; slice <= text.length; slice++)
      for (const [maxValues, problem] of [
        [values, undefined],
        [values - 1, 'too many values'],
      ] as const) {
        const scan = new JsonScan(text, { maxDepth: 32, maxKeys: 3, maxValues })
        while (scan.advance(slice));
        expect(scan.problem).toBe(problem)
      }
  })
})

test('however many wait for a turn, each turn resumes one', async () => {
  let resumed = 0
  const resumedIn: number[] = []
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      await nextTurn()
      resumed++
      resumedIn.push(turn)
    }),
  )
  isOver = true
  expect(resumed).toBe(20)
  expect(new Set(resumedIn).size).toBe(20)
})
