import { expect, test } from 'vitest'
import { cpuTimeMs } from '../../../test/cpu-time.ts'
import { parseEmailAddress } from './address.ts'

test('addresses are read as they are written in an envelope', () => {
  const texts = ['a.b@Bell.Example', '.a..b.@bell.example', '"a b"@bell.example', 'zoë@glöck.example'].map(
    (given) => parseEmailAddress(given)?.text,
  )
  expect(texts).toEqual(['a.b@bell.example', '".a..b."@bell.example', '"a b"@bell.example', 'zoë@xn--glck-6qa.example'])
  for (const given of ['', 'a', '@b.example', '...@b.example', 'a(b@b.example', 'a b@b.example', 'a@b_c.example'])
    expect(parseEmailAddress(given), given).toBeUndefined()
})

test('long texts that are no addresses are refused in little time', async () => {
  const usedMs = await cpuTimeMs(() => {
    for (const letters of ['a', '.', 'a.', '"'])
      expect(parseEmailAddress(`${letters.repeat(50_000)}(@bell.example`)).toBeUndefined()
  })
  expect(usedMs).toBeLessThan(2_000)
})
