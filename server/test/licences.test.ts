import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAllowed, listLicences, writeList } from '../licences.mjs'

const read = (name: string) => readFile(join(import.meta.dirname, '../..', name), 'utf8')

test('everything that runs has a licence that is allowed, and is on the list', async () => {
  const list = listLicences(JSON.parse(await read('package-lock.json')))
  expect(list.length).toBeGreaterThan(30)
  expect(list.filter(({ licence }) => !isAllowed(licence))).toEqual([])
  expect(await read('docs/licences.md')).toBe(writeList(list))
})

test('what the MJML compiler names and never loads is not installed: one of these packages has an open vulnerability', async () => {
  const names = listLicences(JSON.parse(await read('package-lock.json'))).map(({ name }) => name)
  expect(names).toContain('mjml-browser')
  expect(names).toContain('xtend')
  for (const name of ['html-minifier-terser', 'terser', 'clean-css']) expect(names).not.toContain(name)
})

test.each([
  ['MIT', true],
  ['(BSD-3-Clause OR GPL-2.0)', true],
  ['GPL-3.0', false],
  ['(MIT AND GPL-3.0)', false],
  ['SEE LICENSE IN LICENSE', false],
  ['unknown', false],
])('%s is allowed: %s', (licence, isFine) => {
  expect(isAllowed(licence)).toBe(isFine)
})

test('a package with another licence, or without one, is found; what only develops is not listed, a stand-in once', () => {
  const packages = {
    '': { version: '1.0.0' },
    'node_modules/a': { version: '1.0.0', license: 'SSPL-1.0' },
    'node_modules/a/node_modules/@b/c': { version: '2.0.0' },
    'node_modules/d': { version: '3.0.0', license: 'GPL-3.0', dev: true },
    'node_modules/e': { name: 'f', version: '4.0.0', license: 'MIT' },
    'node_modules/g': { name: 'f', version: '4.0.0', license: 'MIT' },
  }
  expect(listLicences({ packages })).toEqual([
    { name: '@b/c', version: '2.0.0', licence: 'unknown' },
    { name: 'a', version: '1.0.0', licence: 'SSPL-1.0' },
    { name: 'f', version: '4.0.0', licence: 'MIT' },
  ])
})
