// Which tests are not run on the PostgreSQL of TEST_DATABASE_URL, because they would only see again what they see on the embedded one.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Who opens a database there imports this, or somebody who does. */
const DATABASES = 'server/test/database.ts'

/** They do, but are about others: browsers, providers, templates, and servers that die while they send. */
const ABOUT_OTHERS = [
  'server/test/{browsers,channels}/**/*.test.ts',
  'server/test/hostile-templates.test.ts',
  'server/test/chaos/{kill-*,schedules,cancels,poison,provider-faults}.test.ts',
]

export function leftOut(): string[] {
  const paths = globSync('server/{src,test}/**/*.ts', { cwd: ROOT })
  const importers = new Map<string, string[]>()
  for (const path of paths) for (const to of importsOf(path)) importers.set(to, [...(importers.get(to) ?? []), path])
  // A set is walked to its end, also to what is added on the way.
  const reaching = new Set([DATABASES])
  for (const path of reaching) for (const importer of importers.get(path) ?? []) reaching.add(importer)
  return [...paths.filter((path) => path.endsWith('.test.ts') && !reaching.has(path)), ...ABOUT_OTHERS]
}

const importsOf = (path: string) =>
  [...readFileSync(join(ROOT, path), 'utf8').matchAll(/\b(?:from|import)[\s(]+'(\.[^']+)'/g)].map(([, to = '']) =>
    join(dirname(path), to),
  )
