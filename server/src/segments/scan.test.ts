import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { recipients, unshared } from '../../test/engine.ts'
import { tagIs } from '../../test/segments.ts'
import { systemClock } from '../lib/clock.ts'
import type { SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { type AudienceMember, pageStatement } from './audience.ts'
import { readFilters } from './filters/read-filters.ts'
import { createScanAudience, type ScanLimits } from './scan.ts'

const SIZE = 1_000
const LONG_MS = 600_000

let app: TestApp
let ids: SubscriptionId[]
beforeAll(async () => {
  app = await testApp()
  const made = await recipients({ db: app.db, clock: systemClock() }, app.tenant.id, SIZE, { tags: { level: 'gold' } })
  ids = made.map(({ id }) => id).sort()
  await app.db.query(sql`analyze users, subscriptions`)
})
afterAll(() => app.close())

/** The first statements that have a limit sleep until PostgreSQL cancels them; all others have time enough. */
function slowDatabase(db: Db, slow: number) {
  let canceled = 0
  const database: Db = {
    ...db,
    query: (statement, options = {}) => {
      const { timeoutMs, ...rest } = options
      if (timeoutMs === undefined) return db.query(statement, options)
      if (canceled === slow) return db.query(statement, { ...rest, timeoutMs: LONG_MS })
      canceled++
      return db.query(sql`select pg_sleep(3600)`, { ...rest, timeoutMs: 10 })
    },
  }
  return { database, canceled: () => canceled }
}

function aScan(db: Db, limits: Partial<ScanLimits>, filters: object[] = [tagIs('level', 'gold')]) {
  const scope = { appId: app.tenant.id, now: new Date('2030-01-01T09:00:00Z') }
  const { tree } = readFilters(filters as never)
  const scanAudience = createScanAudience(unshared(db), { maxCost: 1e12, maxMs: LONG_MS, ...limits })
  return (after?: SubscriptionId, size?: number) =>
    scanAudience<AudienceMember>({
      ...{ scope, after, size, maxSize: SIZE },
      statement: (range) => pageStatement(tree, scope, range),
    })
}

test('a range that takes too long is halved until it does not; the next ones grow again, and everybody is found once', async () => {
  const { database, canceled } = slowDatabase(app.db, 3)
  const scan = aScan(database, { minSize: 10 })
  const sizes: number[] = []
  const found: SubscriptionId[] = []
  let after: SubscriptionId | undefined
  let size: number | undefined
  do {
    const { rows, upTo, nextSize } = await scan(after, size)
    sizes.push(rows.length)
    found.push(...rows.map(({ id }) => id))
    ;[after, size] = [upTo, nextSize]
  } while (after !== undefined)
  expect(canceled()).toBe(3)
  expect(sizes).toEqual([125, 250, 500, 125])
  expect(found).toEqual(ids)
})

test('the smallest range has no limit: no audience is refused', async () => {
  const { database, canceled } = slowDatabase(app.db, Number.POSITIVE_INFINITY)
  const { rows } = await aScan(database, { minSize: 100 })()
  expect(rows.map(({ id }) => id)).toEqual(ids.slice(0, 100))
  expect(canceled()).toBe(4)
})

test('an audience is read by smaller ranges from the start where its statement is estimated to cost more', async () => {
  const or = { operator: 'OR' }
  const near = { field: 'location', radius: 1_000, lat: 1, long: 1 }
  const dear = Array.from({ length: 99 }, () => [near, or])
    .flat()
    .slice(0, -1)
  // Everybody is in both, so that what is found is what was looked at.
  const everybody = [tagIs('level', 'gold'), or]
  const plain = await aScan(app.db, { minSize: 1, maxCost: 500 }, everybody.slice(0, 1))()
  const costly = await aScan(app.db, { minSize: 1, maxCost: 500 }, [...everybody, ...dear])()
  expect(plain.rows.length).toBeLessThan(SIZE)
  expect(costly.rows.length).toBeGreaterThan(0)
  expect(costly.rows.length).toBeLessThan(plain.rows.length)
  const unlimited = await aScan(app.db, { minSize: 1 }, [...everybody, ...dear])()
  expect(unlimited.rows).toHaveLength(SIZE)
})
