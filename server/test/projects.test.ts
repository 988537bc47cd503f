import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { reaching, readFiles } from './importers.ts'
import { PROCESSES } from './projects.ts'

// Loaded once for many files: its hooks would be those of the first one alone.
test('what sets hooks when it is imported serves only files that have a process of their own', () => {
  const files = readFiles()
  const setting = [...files]
    .filter(([path, text]) => !path.endsWith('.test.ts') && /^(?:(?:before|after)(?:Each|All)|vi\.\w+)\(/m.test(text))
    .map(([path]) => path)
  expect(setting).toContain('server/test/process/launch.ts')
  const users = [...reaching(files, setting)].filter((path) => path.endsWith('.test.ts'))
  expect(users).toContain('server/test/process/stop.test.ts')
  expect(users.filter((path) => !matchesGlob(path, PROCESSES))).toEqual([])
})
