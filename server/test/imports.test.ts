import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findFolderProblems } from './code-rules/folders.ts'
import { findCycles, findImports, type Import, refuse } from './code-rules/imports.ts'
import { findForeignLookups } from './code-rules/lookups.ts'
import { findForbiddenWords } from './code-rules/words.ts'
import { openSources, type Sources } from './source.ts'

let sources: Sources
beforeAll(() => {
  sources = openSources()
})
afterAll(() => sources.close())

describe('the sources', () => {
  test('import only what the table lets them', () => {
    const imports = findImports(sources)
    expect(imports.filter((it) => refuse(it)).map((it) => `${it.from} imports ${it.to}: ${refuse(it)}`)).toEqual([])
    // Every relative import was followed to a file: nothing was looked past.
    const files = new Set(sources.files.map(({ path }) => path))
    expect(imports.filter(({ to }) => to.endsWith('.ts') && !files.has(to))).toEqual([])
    expect(imports.length).toBeGreaterThan(300)
  })

  test('have no import cycles, type imports included', () => {
    expect(findCycles(findImports(sources))).toEqual([])
  })

  test('lie in folders of at most 25 files, with only main.ts and app.ts in the root', () => {
    expect(findFolderProblems(sources.files.map(({ path }) => path))).toEqual([])
  })

  test('read the clock, the environment and the network, and write to the terminal, only where they may', () => {
    expect(findForbiddenWords(sources)).toEqual([])
  })

  test('look up nothing in plain objects by names that others chose', () => {
    expect(findForeignLookups(sources)).toEqual([])
  })
})

describe('the table', () => {
  const asked = (from: string, to: string, more: Partial<Import> = {}) =>
    refuse({ from, to, isType: false, names: ['something'], ...more })

  test.each([
    ['lib/errors.ts', 'lib/ids.ts'],
    ['storage/db.ts', 'lib/clock.ts'],
    ['storage/embedded/lock.ts', 'storage/embedded/error.ts'],
    ['queue/work.ts', 'storage/db.ts'],
    ['users/store.ts', 'storage/sql.ts'],
    ['users/store.ts', 'users/aliases/identity.ts'],
    ['users/routes.ts', 'http/route.ts'],
    ['users/routes.ts', 'users/create.ts'],
    ['users/create.ts', 'queue/enqueue.ts'],
    ['users/create.ts', 'apps/store.ts'],
    ['messages/deliver.ts', 'channels/channel.ts'],
    ['messages/delivery.ts', 'channels/push/catalog.ts'],
    ['messages/deliver.ts', 'users/store.ts'],
    ['app.ts', 'users/routes.ts'],
    ['cli/key.ts', 'apps/keys/keys.ts'],
    ['composition/senders.ts', 'channels/push/fcm/channel.ts'],
    ['process/open-database.ts', 'storage/migrate.ts'],
    ['app.ts', 'composition/routes.ts'],
    ['cli/sink.ts', 'sink/box.ts'],
    ['main.ts', 'sink/box.ts'],
    ['sink/push/apns.ts', 'lib/clock.ts'],
    ['sink/control.ts', 'node:http'],
    ['storage/db.ts', 'pg'],
    ['http/server.ts', 'node:http'],
    ['channels/outbound.ts', 'node:http'],
    ['users/create.ts', 'node:crypto'],
  ])('%s may import %s', (from, to) => {
    expect(asked(from, to)).toBeUndefined()
  })

  test.each([
    ['lib/errors.ts', 'http/errors.ts'],
    ['lib/log.ts', 'settings/config.ts'],
    ['storage/db.ts', 'http/route.ts'],
    ['storage/db.ts', 'users/store.ts'],
    ['http/auth.ts', 'storage/db.ts'],
    ['http/auth.ts', 'apps/keys/lookup.ts'],
    ['channels/email/smtp.ts', 'storage/db.ts'],
    ['queue/work.ts', 'users/store.ts'],
    ['queue/work.ts', 'limits/store.ts'],
    ['queue/work.ts', 'http/route.ts'],
    ['limits/take.ts', 'http/route.ts'],
    ['limits/take.ts', 'app.ts'],
    ['users/create.ts', 'composition/routes.ts'],
    ['users/create.ts', 'settings/config.ts'],
    ['users/store.ts', 'http/route.ts'],
    ['users/store.ts', 'queue/enqueue.ts'],
    ['users/store.ts', 'apps/store.ts'],
    ['users/routes.ts', 'storage/db.ts'],
    ['users/routes.ts', 'apps/store.ts'],
    ['users/players/routes.ts', 'queue/enqueue.ts'],
    ['users/create.ts', 'http/route.ts'],
    ['users/create.ts', 'users/routes.ts'],
    ['users/create.ts', 'apps/routes.ts'],
    ['users/create.ts', 'limits/take.ts'],
    ['users/create.ts', 'events/store.ts'],
    ['apps/create.ts', 'users/store.ts'],
    ['messages/deliver.ts', 'channels/email/smtp.ts'],
    ['messages/delivery.ts', 'channels/push/providers.ts'],
    ['app.ts', 'sink/box.ts'],
    ['channels/push/apns/channel.ts', 'sink/push/apns.ts'],
    ['apps/create.ts', 'sink/box.ts'],
    ['sink/push/apns.ts', 'channels/push/apns/channel.ts'],
    ['helpers/text.ts', 'lib/ids.ts'],
    ['users/create.ts', 'cli/print.ts'],
    ['users/create.ts', 'pg'],
    ['users/routes.ts', 'node:http'],
  ])('%s may not import %s', (from, to) => {
    expect(asked(from, to)).toEqual(expect.any(String))
  })

  test('the domain that answers a port may know its shape, and nothing more of http', () => {
    const port = { names: ['AppGate', 'KeyLookup'], isType: true }
    expect(asked('apps/store.ts', 'http/route.ts', port)).toBeUndefined()
    expect(asked('users/create.ts', 'http/route.ts', port)).toEqual(expect.any(String))
    expect(asked('apps/keys/keys.ts', 'http/route.ts', { names: ['AppGate', 'route'] })).toEqual(expect.any(String))
    expect(asked('apps/keys/keys.ts', 'http/route.ts', { names: [] })).toEqual(expect.any(String))
    expect(asked('apps/keys/keys.ts', 'http/server.ts', port)).toEqual(expect.any(String))
    expect(asked('users/create.ts', 'pg', { isType: true })).toBeUndefined()
  })
})

describe('reading the sources', () => {
  const withFiles = async <Result>(files: Record<string, string>, look: (sources: Sources) => Result) => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-source-'))
    try {
      const compilerOptions = { module: 'nodenext', target: 'es2024', allowImportingTsExtensions: true, noEmit: true }
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
      const fixture = openSources(join(folder, 'tsconfig.json'), `${folder}/`)
      try {
        return look(fixture)
      } finally {
        fixture.close()
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  test('sees every way of importing, and which of them are types', async () => {
    const a = `import { x, type T } from './b.ts'
      import type { U as V } from './b.ts'
      import { type T as W } from './b.ts'
      import * as all from './b.ts'
      import './b.ts'
      export { x as y } from './b.ts'
      export * from './b.ts'
      export const later = () => import('./b.ts')
      export const used: [T, V, W] = [x, all.x, x]`
    const b = 'export const x = 1; export type T = number; export type U = number'
    const found = await withFiles({ 'a.ts': a, 'b.ts': b }, findImports)
    expect(found.map(({ from, to, isType, names }) => [from, to, isType, names.join()])).toEqual([
      ['a.ts', 'b.ts', false, 'x,T'],
      ['a.ts', 'b.ts', true, 'U'],
      ['a.ts', 'b.ts', true, 'T'],
      ['a.ts', 'b.ts', false, ''],
      ['a.ts', 'b.ts', false, ''],
      ['a.ts', 'b.ts', false, 'x'],
      ['a.ts', 'b.ts', false, ''],
      ['a.ts', 'b.ts', false, ''],
    ])
  })

  test('finds import cycles, those of types included', () => {
    const edge = (from: string, to: string, isType = false): Import => ({ from, to, isType, names: [] })
    expect(findCycles([edge('a', 'b'), edge('b', 'c'), edge('c', 'a')])).toEqual([['a', 'b', 'c']])
    expect(findCycles([edge('a', 'b'), edge('b', 'c'), edge('c', 'b')])).toEqual([['b', 'c']])
    expect(findCycles([edge('a', 'b'), edge('a', 'c'), edge('b', 'c'), edge('c', 'a', true)])).toEqual([
      ['a', 'b', 'c'],
    ])
    expect(findCycles([edge('a', 'b'), edge('a', 'c'), edge('b', 'c')])).toEqual([])
  })

  test('finds folders that are too full, and strangers in the root', () => {
    const files = (count: number) => Array.from({ length: count }, (_, i) => `users/file-${i}.ts`)
    expect(findFolderProblems(['app.ts', 'main.ts', ...files(25)])).toEqual([])
    expect(findFolderProblems(['main.ts', 'extra.ts', ...files(26)])).toEqual([
      'extra.ts lies in the root, which has app.ts and main.ts alone',
      'users has 26 files; the most is 25',
    ])
  })

  test('finds the words in code, and not in comments or strings', async () => {
    const bad = [
      'Date.now()',
      'new Date()',
      'Date()',
      'process.env.HOME',
      'console.log(1)',
      'process.stdout.write("")',
      'fetch("http://example.com")',
      'globalThis.fetch',
      'http.request("http://example.com")',
    ]
    const fine = ['new Date(0)', 'Date.parse("")', '"Date.now()" // fetch(', 'process.argv', 'performance.now()']
    const lines = (list: string[]) => list.map((it, i) => `export const x${i} = () => { ${it}\n }`).join('\n')
    const files = {
      'bad.ts': `import http from 'node:http'\n${lines(bad)}`,
      'fine.ts': `import type { Server } from 'node:http'\nimport { isIP } from 'node:net'\nexport const s = (it: Server) => isIP(String(it))\n${lines(fine)}`,
    }
    const found = await withFiles(files, findForbiddenWords)
    expect(found.filter((it) => it.startsWith('fine.ts'))).toEqual([])
    for (const [i, word] of bad.entries()) expect(found.join('\n'), word).toContain(`bad.ts x${i}: `)
    expect(found).toContain('bad.ts imports node:http (network)')
  })

  test('finds lookups by names of others, and not by names of ours', async () => {
    const bad = [
      'TABLE[name]',
      'TABLE[name as "a"]',
      'name in TABLE',
      'TABLE[`x$' + '{name}`]',
      'JSON.parse(name)[name]',
    ]
    const fine = [
      'TABLE[ours]',
      '"a" in TABLE',
      'Object.hasOwn(TABLE, name)',
      '[1][0]',
      'new Map([["a", 1]]).get(name)',
      '(() => { for (const key in TABLE) void TABLE[key] })()',
      '(() => { const o: Record<string, number> = {}; o[name] = 1; delete o[name] })()',
    ]
    const head = 'const TABLE: Record<string, number> = { a: 1 }\n'
    const lines = (list: string[]) =>
      list.map((it, i) => `export const x${i} = (name: string, ours: 'a') => [ours, name, ${it}]`).join('\n')
    const found = await withFiles({ 'bad.ts': head + lines(bad), 'fine.ts': head + lines(fine) }, findForeignLookups)
    expect(found.filter((it) => it.startsWith('fine.ts'))).toEqual([])
    for (const [i, lookup] of bad.entries()) expect(found.join('\n'), lookup).toContain(`bad.ts x${i}: `)
  })
})
