// How vitest.config.ts divides the tests.

import { reaching, readFiles } from './importers.ts'

/** Tests of whole processes: servers that are started and killed, browsers, mail servers. Each file has a process of its own. */
export const PROCESSES = 'server/test/{chaos,fuzz,guides,process,browsers,mail}/**/*.test.ts'

/** Fault tests: minutes of kills, outages and nonsense. `npm run test:faults` runs them, `npm test` does not. */
export const FAULTS = 'server/test/{chaos,fuzz}/**/*.test.ts'

/** Measures how long one app waits beside another, which must not depend on how long it waits beside other tests. */
export const ALONE = 'server/test/chaos/hostile-app.test.ts'

/** They open databases, but are about others: browsers, providers, templates, and servers that die while they send. */
const ABOUT_OTHERS = [
  'server/test/{browsers,channels}/**/*.test.ts',
  'server/test/hostile-templates.test.ts',
  'server/test/chaos/{kill-*,schedules,cancels,poison,provider-faults,hostile-app}.test.ts',
]

/**
 * What would only see on the PostgreSQL of TEST_DATABASE_URL again what it sees on the embedded one: files that nowhere import what opens
 * databases there, and those about others.
 */
export function sameOnBoth(): string[] {
  const files = readFiles()
  const seeing = reaching(files, ['server/test/database.ts'])
  return [...[...files.keys()].filter((path) => path.endsWith('.test.ts') && !seeing.has(path)), ...ABOUT_OTHERS]
}
