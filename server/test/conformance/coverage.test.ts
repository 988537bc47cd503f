// docs/spec-coverage.md maps the sentences of the interface specification to tests; a test that is renamed or removed
// must not leave a sentence with nobody to hold it.

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const page = await readFile(new URL('../../../docs/spec-coverage.md', import.meta.url), 'utf8')
const [covered = ''] = page.split('\n## Not built yet')
const lines = covered.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| Sentence'))

const references = lines.flatMap((line) => {
  const cell = line.split(' | ').at(-1) ?? ''
  return [...cell.matchAll(/`([\w/.-]+\.test\.ts)`: (.+?)(?=<br>| \|$)/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }))
})

const sources = new Map<string, Promise<string>>()
function sourceOf(file: string): Promise<string> {
  const source = sources.get(file) ?? readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
  sources.set(file, source)
  return source
}

/** The text as the title of a test or a group: in quotes, followed by a function. */
function hasTitle(source: string, title: string): boolean {
  const quoted = title.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`(['"\`])${quoted}\\1,\\s*(async\\s*)?\\(`).test(source)
}

test('the page names tests for every sentence it quotes', () => {
  expect(lines.length).toBeGreaterThan(70)
  expect(lines.filter((line) => !/`[\w/.-]+\.test\.ts`: ./.test(line))).toEqual([])
  const named = lines.flatMap((line) => line.match(/`[\w/.-]+\.test\.ts`/g) ?? [])
  expect(references).toHaveLength(named.length)
})

test('every test that is named exists', async () => {
  const missing: string[] = []
  for (const { file, title } of references) {
    const source = await sourceOf(file)
    for (const part of title.split(' › ')) if (!hasTitle(source, part)) missing.push(`${file}: ${part}`)
  }
  expect(missing).toEqual([])
})
