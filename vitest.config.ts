import { defineConfig } from 'vitest/config'
import LongFirst from './server/test/long-first.ts'

export default defineConfig({
  test: {
    include: ['server/**/*.test.ts'],
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    sequence: { sequencer: LongFirst },
    reporters: ['default', './server/test/reporter.ts'],
  },
})
