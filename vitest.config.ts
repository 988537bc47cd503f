import { defineConfig } from 'vitest/config'
import LongFirst from './server/test/long-first.ts'
import { ALONE, PROCESSES, sameOnBoth } from './server/test/projects.ts'

const exclude = process.env.TEST_DATABASE_URL ? sameOnBoth() : []

export default defineConfig({
  test: {
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    // One more than the cores of a small machine: many tests wait more than they work.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    sequence: { sequencer: LongFirst },
    reporters: ['default', './server/test/reporter.ts'],
    projects: [
      { test: { name: 'processes', include: [PROCESSES], exclude: [ALONE, ...exclude] } },
      // After all others: it compares times, and whoever else is busy would be in them.
      { test: { name: 'alone', include: [ALONE], exclude, sequence: { groupOrder: 1 } } },
      {
        test: {
          name: 'server',
          include: ['server/**/*.test.ts'],
          exclude: [PROCESSES, ...exclude],
          // Many files one after the other in each process: to load the server anew takes longer than most of them take. So what
          // a file opens it has to close, and hooks are called by the file itself: what it imports may have been there before.
          isolate: false,
        },
      },
    ],
  },
})
