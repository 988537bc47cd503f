import { defineConfig } from 'vitest/config'
import LongFirst from './server/test/long-first.ts'
import { ALONE, FAULTS, PROCESSES, sameOnBoth } from './server/test/projects.ts'

const exclude = process.env.TEST_DATABASE_URL ? sameOnBoth() : []

export default defineConfig({
  test: {
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    // One more than the cores of a small machine: many tests wait more than they work.
    maxWorkers: 3,
    // These end a test that hangs. They are no promise of speed: a busy machine must not fail a test.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000 } },
    sequence: { sequencer: LongFirst },
    reporters: ['default', './server/test/reporter.ts'],
    projects: [
      { test: { name: 'processes', include: [PROCESSES], exclude: [FAULTS, ...exclude] } },
      { test: { name: 'faults', include: [FAULTS], exclude: [ALONE, ...exclude] } },
      // It runs after all others because it compares times.
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
