import fc from 'fast-check'
import smpp from 'smpp'
import { describe, expect, test } from 'vitest'
import { decodeGsm7, gsm7Codes } from './gsm7.ts'
import { cutIntoSegments, decodeUcs2, joinHeader, type SmsSegments } from './segments.ts'

const read = ({ encoding, parts }: SmsSegments) => parts.map(encoding === 'gsm7' ? decodeGsm7 : decodeUcs2)
const shape = (text: string) => {
  const { encoding, parts } = cutIntoSegments(text)
  return [encoding, ...parts.map(({ length }) => (encoding === 'gsm7' ? length : length / 2))]
}

describe('the number of parts', () => {
  test.each([
    ['', ['gsm7', 0]],
    ['a'.repeat(160), ['gsm7', 160]],
    ['a'.repeat(161), ['gsm7', 153, 8]],
    ['a'.repeat(306), ['gsm7', 153, 153]],
    ['a'.repeat(307), ['gsm7', 153, 153, 1]],
    ['€'.repeat(80), ['gsm7', 160]],
    [`${'€'.repeat(80)}a`, ['gsm7', 152, 9]],
    [`${'a'.repeat(152)}€${'a'.repeat(8)}`, ['gsm7', 152, 10]],
    ['ж'.repeat(70), ['ucs2', 70]],
    ['ж'.repeat(71), ['ucs2', 67, 4]],
    [`a${'🎉'.repeat(34)}b`, ['ucs2', 70]],
    ['🎉'.repeat(35), ['ucs2', 70]],
    ['🎉'.repeat(36), ['ucs2', 66, 6]],
    [`${'a'.repeat(160)}ж`, ['ucs2', 67, 67, 27]],
    ['`', ['ucs2', 1]],
    ['ç', ['ucs2', 1]],
    ['Ç{}[]~|\\^€', ['gsm7', 19]],
    ['\u001b', ['ucs2', 1]],
  ])('%j', (text, expected) => {
    expect(shape(text)).toEqual(expected)
  })

  test('a half of a surrogate pair becomes the replacement character', () => {
    expect(read(cutIntoSegments('a\ud83c'))).toEqual(['a\ufffd'])
  })
})

describe('for every text', () => {
  const gsm = fc.constantFrom(...Array.from('abcXYZ019 @£¥èéÄÖÑÜäöñüà¿¡§ΔΦΓΛ\n\r€{}[]~^|\\'))
  const any = fc.oneof(
    gsm,
    fc.constantFrom('ж', '漢', '🎉', '👩‍👩‍👧', 'ç', '`'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  )
  const text = fc.oneof(
    fc.array(gsm, { maxLength: 500 }).map((characters) => characters.join('')),
    fc.array(any, { maxLength: 300 }).map((characters) => characters.join('')),
  )

  test('the parts together are the text, none is too long, and no character is in two of them', () => {
    fc.assert(
      fc.property(text, (text) => {
        const segments = cutIntoSegments(text)
        const parts = read(segments)
        expect(parts.join('')).toBe(text.toWellFormed())
        const room = segments.encoding === 'gsm7' ? [160, 153] : [140, 134]
        const most = (segments.parts.length === 1 ? room[0] : room[1]) as number
        for (const part of segments.parts) expect(part.length).toBeLessThanOrEqual(most)
        for (const part of parts) expect(part.isWellFormed()).toBe(true)
        if (segments.encoding === 'gsm7') for (const part of segments.parts) expect(part.at(-1)).not.toBe(0x1b)
        // Not one part more than needed: the first character of the next would not have fitted.
        for (let i = 1; i < parts.length; i++) {
          const first = Array.from(parts[i] as string)[0] as string
          const size = segments.encoding === 'gsm7' ? (gsm7Codes(first)?.length as number) : first.length * 2
          expect((segments.parts[i - 1] as Buffer).length + size).toBeGreaterThan(most)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('another implementation reads the same', () => {
    fc.assert(
      fc.property(text, (text) => {
        const { encoding, parts } = cutIntoSegments(text)
        const other = smpp.encodings[encoding === 'gsm7' ? 'ASCII' : 'UCS2']
        expect(parts.map((part) => other.decode(part)).join('')).toBe(text.toWellFormed())
      }),
    )
  })
})

test('bytes of any kind can be read as the alphabet', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(typeof decodeGsm7(bytes)).toBe('string')
      expect(decodeUcs2(Buffer.from(bytes)).length).toBe(bytes.length >> 1)
    }),
  )
})

test('the header says which part of how many', () => {
  expect(joinHeader(0x1ff, 3, 2)).toEqual(Buffer.from([5, 0, 3, 0xff, 3, 2]))
})
