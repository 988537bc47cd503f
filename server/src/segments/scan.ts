// Reads an audience by ranges of subscription ids, on connections reserved for this. Each statement's cost is estimated
// before it runs, and its time is limited while it runs. An expensive audience is read in smaller ranges, so that apps
// take turns every few seconds, whatever their filters cost. No audience is refused.

import { TookTooLong } from '../lib/errors.ts'
import type { SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { SharedPool } from '../storage/shared-pool.ts'
import { type Sql, sql } from '../storage/sql.ts'
import { findRangeEnd, type SubscriptionRange } from './audience.ts'
import type { AudienceScope } from './filters/compile.ts'

/**
 * For job handlers that scan. They spend most of their time waiting for a turn, so they take no slot from other jobs,
 * and no app may use all the waiting places.
 */
export const AUDIENCE_SCAN_HANDLER = { waitsFor: () => '', mostWaiting: () => 16 }

export type AudienceScan = {
  scope: AudienceScope
  after: SubscriptionId | undefined
  /** The number of subscriptions in a range, unless reading them would take too long. */
  maxSize: number
  /** The `nextSize` of the previous range, if there was one. Estimated by default. */
  size?: number | undefined
  /** Selects the matching subscriptions of a range. It must be read-only. */
  statement(range: SubscriptionRange): Sql
  signal?: AbortSignal
}

/** `upTo` is where the next range begins; undefined after the last one. */
export type ScannedRange<Row> = { rows: Row[]; upTo: SubscriptionId | undefined; nextSize: number }

export type ScanAudience = <Row>(scan: AudienceScan) => Promise<ScannedRange<Row>>

export type ScanLimits = {
  /** The maximum cost of a statement, as estimated by PostgreSQL. */
  maxCost: number
  /** A statement that takes longer is canceled, and its range is halved. */
  maxMs: number
  /** A range of this size is read to its end, however long it takes. */
  minSize: number
}

/**
 * Reading 10,000 subscriptions and their users with one filter is estimated at 28,000; with a hundred filters, at
 * 50,000 or more.
 */
const DEFAULT_LIMITS: ScanLimits = { maxCost: 40_000, maxMs: 2_000, minSize: 100 }

export function createScanAudience(pool: SharedPool, limits: Partial<ScanLimits> = {}): ScanAudience {
  const { maxCost, maxMs, minSize } = { ...DEFAULT_LIMITS, ...limits }

  async function estimateSize(db: Db, { scope, after, maxSize, statement }: AudienceScan): Promise<number> {
    const range = { after, upTo: await findRangeEnd(db, scope, after, maxSize) }
    const cost = await estimateCost(db, statement(range))
    return cost <= maxCost ? maxSize : Math.floor((maxSize * maxCost) / cost)
  }

  /** Returns undefined when the statement took too long. */
  async function readRange<Row>(db: Db, { scope, after, statement }: AudienceScan, size: number) {
    const upTo = await findRangeEnd(db, scope, after, size)
    const options = { prepare: false, ...(size > minSize && { timeoutMs: maxMs }) }
    const began = performance.now()
    try {
      const rows = await db.query<Row>(statement({ after, upTo }), options)
      return { rows, upTo, ms: performance.now() - began }
    } catch (error) {
      if (error instanceof TookTooLong && size > minSize) return undefined
      throw error
    }
  }

  return async <Row>(scan: AudienceScan): Promise<ScannedRange<Row>> => {
    const { scope, maxSize, signal } = scan
    const bounded = (size: number) => Math.max(Math.min(minSize, maxSize), Math.min(maxSize, size))
    const inTurn = <Result>(run: (db: Db) => Promise<Result>) => pool.use(scope.appId, run, signal)
    let size = bounded(scan.size ?? (await inTurn((db) => estimateSize(db, scan))))
    for (;;) {
      // Each attempt takes a new turn, so that others can run in between.
      const found = await inTurn((db) => readRange<Row>(db, scan, size))
      if (found)
        return { rows: found.rows, upTo: found.upTo, nextSize: bounded(found.ms < maxMs / 4 ? size * 2 : size) }
      size = bounded(Math.floor(size / 2))
    }
  }
}

type ExplainRow = { 'QUERY PLAN': [{ Plan: { 'Total Cost': number } }] }

async function estimateCost(db: Db, statement: Sql): Promise<number> {
  const [row] = await db.query<ExplainRow>(sql`explain (format json) ${statement}`, { prepare: false })
  return row?.['QUERY PLAN'][0].Plan['Total Cost'] ?? 0
}
