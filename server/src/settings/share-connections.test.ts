import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { openPools } from '../composition/pools.ts'
import { createLog } from '../lib/log.ts'
import { checkConnections, describeShortage } from '../process/open-database.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { type ConnectionBudgetSettings, shareConnections } from './share-connections.ts'

const settings = (given: Partial<ConnectionBudgetSettings> = {}): ConnectionBudgetSettings => ({
  role: 'all',
  databaseUrl: 'postgres://db',
  databaseConnections: undefined,
  countingConnections: undefined,
  audienceConnections: undefined,
  ...given,
})
const sum = (shares: Record<string, number>) => Object.values(shares).reduce((total, share) => total + share, 0)

describe('sharing out connections', () => {
  test.each(['all', 'api', 'worker'] as const)('%s opens what it may, with one to listen', (role) => {
    for (let databaseConnections = 12; databaseConnections <= 200; databaseConnections++) {
      const shares = shareConnections(settings({ role, databaseConnections }))
      expect(sum(shares)).toBe(databaseConnections - 1)
      const api = [shares.requests, shares.limits, shares.counting]
      const worker = [shares.jobs, shares.direct, shares.audiences]
      expect(Math.min(...api)).toBe(role === 'worker' ? 0 : Math.min(...api.map((share) => Math.max(1, share))))
      expect(Math.min(...worker)).toBe(role === 'api' ? 0 : Math.min(...worker.map((share) => Math.max(1, share))))
    }
  })

  test('15 by default, and more where nobody else uses the database', () => {
    expect(shareConnections(settings())).toEqual({
      requests: 4,
      limits: 1,
      counting: 2,
      jobs: 3,
      direct: 2,
      audiences: 2,
    })
    expect(sum(shareConnections(settings({ databaseUrl: undefined })))).toBe(29)
  })

  test('what is asked for by name comes out of the same number', () => {
    const shares = shareConnections(settings({ countingConnections: 4, audienceConnections: 3 }))
    expect([shares.counting, shares.audiences, sum(shares)]).toEqual([4, 3, 14])
    expect(() => shareConnections(settings({ countingConnections: 10 }))).toThrow(
      'DATABASE_CONNECTIONS must be at least 20',
    )
  })
})

describe('on PostgreSQL', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await testDatabase()
  })
  afterAll(() => database.close())

  test('however busy it is, a server opens no more than its share', async () => {
    const { connection } = database
    const pools = openPools({ connection, shares: shareConnections(settings()), log: createLog('silent') })
    const opened = new Set<number>()
    const note = async (db: Db) => {
      const [row] = await db.query<{ pid: number }>(sql`select pg_backend_pid() as pid`)
      opened.add(row?.pid ?? 0)
    }
    const many = Array.from({ length: 40 })
    await Promise.all([
      ...[pools.db, pools.limitsDb, pools.workerDb, pools.directDb].flatMap((db) => many.map(() => note(db))),
      ...[pools.counting, pools.audiences].flatMap((pool) =>
        many.map((_, i) => pool.use(`app ${i}`, note).catch(() => {})),
      ),
    ])
    await pools.close()
    expect(opened.size).toBe(14)
  })

  test('a server that can never open its connections does not start', async () => {
    await expect(
      checkConnections(database.db, settings({ databaseConnections: 900 }), createLog('silent')),
    ).rejects.toThrow(/opens up to 900 connections, and PostgreSQL allows \d+; raise max_connections/)
    await checkConnections(database.db, settings(), createLog('silent'))
  })
})

test('a server that may find too few says how many are needed', () => {
  expect(describeShortage({ most: 97, used: 83 }, 15)).toBeUndefined()
  expect(describeShortage({ most: 97, used: 84 }, 15)).toEqual({
    isCertain: false,
    says: expect.stringContaining('others have 83 open, and PostgreSQL allows 97: 98 are needed'),
  })
})
