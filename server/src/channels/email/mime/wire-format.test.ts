import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toWireText } from './wire-format.ts'

test.each([
  ['a\r\n', 'a\r\n'],
  ['a', 'a\r\n'],
  ['', ''],
  ['.', '..\r\n'],
  ['a\r\n.\r\nb', 'a\r\n..\r\nb\r\n'],
  ['a\n.\nMAIL FROM:<x>\n', 'a\r\n..\r\nMAIL FROM:<x>\r\n'],
  ['a\r.\rb', 'a\r\n..\r\nb\r\n'],
  ['a\n.\r\nb', 'a\r\n..\r\nb\r\n'],
  ['a\r\n.\nb', 'a\r\n..\r\nb\r\n'],
  ['a\r\r\nb', 'a\r\n\r\nb\r\n'],
])('%j goes out as %j', (given, wanted) => {
  expect(toWireText(given)).toBe(wanted)
})

test('no message holds what any server could take for its end', () => {
  const unit = fc.constantFrom('\r', '\n', '.', 'a', '\r\n', '\r\n.\r\n', '\n.\n', '\r.\r')
  fc.assert(
    fc.property(fc.array(unit, { minLength: 1, maxLength: 30 }), (parts) => {
      const wire = toWireText(parts.join(''))
      expect(`\r\n${wire}`).not.toMatch(/[\r\n]\.[\r\n]/)
      expect(wire).not.toMatch(/(^|[^\r])\n|\r([^\n]|$)/)
      expect(wire.endsWith('\r\n')).toBe(true)
    }),
  )
})
