import { expect, test } from 'vitest'
import { matches, printsAsShown } from './compare-output.ts'
import { readGuide, readServerStart } from './read-guide.ts'

const ID = '2c9093a1-91c8-4833-bdcf-1c697cf85c29'

test.each([
  [{ id: ID, n: 1 }, { id: '3f570561-41a6-4c60-b725-80ed333ebc03', n: 1 }, true],
  [{ id: ID }, { id: 'none' }, false],
  [{ id: ID }, { id: ID, more: 1 }, false],
  [{ id: ID, '…': '…' }, { id: ID, more: 1 }, true],
  [{ id: ID, more: 1 }, { id: ID }, false],
  ['00fc…', '00fc13', true],
  ['00fc…', '10fc13', false],
  [[1, 2], [1, 2, 3], false],
  [[2, '…'], [1, 2, 3], true],
  [[4, '…'], [1, 2, 3], false],
  [null, null, true],
  [null, 0, false],
])('%j against %j: %s', (shown, printed, expected) => {
  expect(matches(shown, printed)).toBe(expected)
})

test('several values, and what is no JSON', () => {
  expect(printsAsShown({ kind: 'json', text: '{"a": 1}\n{"b": "…"}' }, '{"a":1}\n\n{\n"b":2}')).toBe(true)
  expect(printsAsShown({ kind: 'json', text: '{"a": 1}' }, 'curl: (7) refused')).toBe(false)
  expect(printsAsShown({ kind: 'text', text: 'ready in … s\n' }, '\nready in 2.1 s')).toBe(true)
})

test('a guide has commands, what they print, and reasons not to run them', () => {
  const guide = `
<!-- not run: it never ends -->
\`\`\`sh
npm start
\`\`\`

\`\`\`sh
echo 1
\`\`\`

\`\`\`json
1
\`\`\`

Words.

\`\`\`json
2
\`\`\`
`
  expect(readGuide(guide)).toEqual([
    { line: 3, commands: 'npm start\n', notRun: 'it never ends', isRepeated: false, prints: undefined },
    { line: 7, commands: 'echo 1\n', notRun: undefined, isRepeated: false, prints: { kind: 'json', text: '1\n' } },
  ])
  expect(() => readGuide('<!-- skip -->\n```sh\n```')).toThrow('unknown comment')
  expect(readServerStart(guide)).toEqual({ env: {}, options: ['--sink'] })
  expect(readServerStart('<!-- commands run against: A=b npm start -->')).toEqual({ env: { A: 'b' }, options: [] })
})
