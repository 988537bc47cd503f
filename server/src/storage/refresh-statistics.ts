// In a young table, a plan made for a hundred rows is soon used for a hundred thousand: prepared statements and
// foreign-key checks keep their plans until the table is analyzed, and autovacuum runs once a minute.
// Measured without this: an import into a new database slowed to 300 users a second until autovacuum ran.

import type { Log } from '../lib/log.ts'
import type { Db } from './db.ts'
import { Sql, sql } from './sql.ts'

/** Beyond this size a table grows slowly enough, relative to itself, for autovacuum. */
const YOUNG_ROWS = 500_000
const LOOK_MS = 500

/**
 * Analyzes the tables that have grown to four times their size at the last analysis. Returns true when there was one.
 * Tables whose rows only change, or are inserted and deleted, are left alone, because each analysis makes every
 * connection plan all statements on the table anew. Measured when growth by half was enough: a tenth of all statement
 * time of a busy new server.
 */
export async function refreshStatistics(db: Db): Promise<boolean> {
  const grown = await db.query<{ name: string }>(sql`
    select quote_ident(s.schemaname) || '.' || quote_ident(s.relname) as name
    from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    where s.schemaname = current_schema and c.reltuples < ${YOUNG_ROWS}
      and s.n_live_tup > 200 + greatest(c.reltuples, 0) * 4
    order by s.relname`)
  // The names come from the catalog and are quoted by it; ANALYZE takes no parameters.
  if (grown.length > 0) await db.query(new Sql(`analyze ${grown.map(({ name }) => name).join(', ')}`, []))
  return grown.length > 0
}

/** `countWork` shows whether anything happened since the last check; an idle server does not check. */
export function keepStatisticsFresh(db: Db, countWork: () => number, log: Log): { stop(): void } {
  let seen = countWork()
  let isLooking = false
  const timer = setInterval(async () => {
    if (isLooking || countWork() === seen) return
    isLooking = true
    try {
      await refreshStatistics(db)
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'Could not refresh table statistics')
    }
    isLooking = false
    seen = countWork()
  }, LOOK_MS)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
