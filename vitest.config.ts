import { defineConfig } from 'vitest/config'
import { leftOut } from './server/test/another-postgres.ts'
import LongFirst from './server/test/long-first.ts'

/** Tests of whole processes: servers that are started and killed, browsers, mail servers. */
const PROCESSES = 'server/test/{chaos,process,browsers,mail}/**/*.test.ts'

const exclude = process.env.TEST_DATABASE_URL ? leftOut() : []

export default defineConfig({
  test: {
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    sequence: { sequencer: LongFirst },
    reporters: ['default', './server/test/reporter.ts'],
    projects: [
      {
        // They wait more than they work, so that two cores are enough for three.
        test: {
          name: 'processes',
          include: [PROCESSES],
          exclude,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // One after the other in two processes: to load the server anew takes longer than most of these take. What a file
        // opens it has to close, and what it imports is as the file before it left it.
        test: {
          name: 'server',
          include: ['server/**/*.test.ts'],
          exclude: [PROCESSES, ...exclude],
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
