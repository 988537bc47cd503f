import { describe, expect, test } from 'vitest'
import { codePoints, findUnstorable, isStorable } from './text.ts'

describe('lengths count code points', () => {
  test.each([
    ['', 0],
    ['abc', 3],
    ['é', 1],
    ['e\u0301', 2],
    ['😀', 1],
    ['👨‍👩‍👧', 5],
    ['\ud800', 1],
    ['a\udc00b', 3],
  ])('%j has %i', (text, length) => {
    expect(codePoints(text)).toBe(length)
  })

  test('128 emoji are 128 characters', () => expect(codePoints('😀'.repeat(128))).toBe(128))
})

describe('what PostgreSQL cannot store', () => {
  test('is U+0000 and half a surrogate pair', () => {
    expect(isStorable('plain 😀 ￿')).toBe(true)
    expect(isStorable('a\0')).toBe(false)
    expect(isStorable('\ud83d')).toBe(false)
    expect(isStorable('\ude00\ud83d')).toBe(false)
  })

  test('is found wherever it hides, as a path', () => {
    expect(findUnstorable({ a: ['x', { b: 'fine' }] })).toBeUndefined()
    expect(findUnstorable({ a: ['x', { b: 'not\0fine' }] })).toBe('a.1.b')
    expect(findUnstorable({ a: { 'k\0': 1 } })).toBe('a')
    expect(findUnstorable('\0')).toBe('body')
  })
})
