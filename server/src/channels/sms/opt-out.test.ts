import { expect, test } from 'vitest'
import { readOptOut } from './opt-out.ts'

test.each([
  ['STOP', 'stop'],
  ['stop', 'stop'],
  [' Stop.\n', 'stop'],
  ['"StopAll"!', 'stop'],
  ['UNSUBSCRIBE', 'stop'],
  ['cancel', 'stop'],
  ['End', 'stop'],
  ['quit', 'stop'],
  ['START', 'start'],
  ['yes', 'start'],
  ['Unstop', 'start'],
  ['help?', 'help'],
])('%j asks for %s', (text, expected) => {
  expect(readOptOut(text)).toBe(expected)
})

test.each(['', ' ', '!', 'please do not stop', 'STOP IT', 'stopp', 'yes please', 'the end', 'constructor'])(
  '%j asks for nothing',
  (text) => {
    expect(readOptOut(text)).toBeUndefined()
  },
)
