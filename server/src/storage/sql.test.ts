import { expect, test } from 'vitest'
import { rows, rowsInTurns } from './sql.ts'

test.each([0, 1, 3, 4, 9, 10])('%i rows, three in a turn, are what they are at once', async (count) => {
  const at = new Date('2030-01-01T00:00:00Z')
  const list = Array.from({ length: count }, (_, n) => ({ n, at, text: `"],[${n}`, list: [n] }))
  let pauses = 0
  const written = await rowsInTurns(list, 3, async () => void pauses++)
  expect(written).toBe(rows(list))
  expect(pauses).toBe(Math.max(0, Math.ceil(count / 3) - 1))
})
