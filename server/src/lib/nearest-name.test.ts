import { expect, test } from 'vitest'
import { nearestName } from './nearest-name.ts'

const NAMES = ['included_segments', 'excluded_segments', 'include_aliases', 'contents', 'ttl', 'ios_sound', 'url']

test.each([
  ['included_segment', 'included_segments'],
  ['include_segments', 'included_segments'],
  ['includedSegments', 'included_segments'],
  ['IOS-SOUND', 'ios_sound'],
  ['contnets', 'contents'],
  ['content', 'contents'],
  ['exclude_segments', 'excluded_segments'],
  ['contents ', 'contents'],
])('%s is meant to be %s', (given, name) => {
  expect(nearestName(given, NAMES)).toBe(name)
})

test.each(['', 'tl', 'message', 'xyz', '🔔', 'a'.repeat(10_000)])('%s is meant to be none of them', (given) => {
  expect(nearestName(given, NAMES)).toBeUndefined()
})
