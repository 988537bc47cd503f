// PostgreSQL lets those who share a row go before one who waits to change it: while somebody always shares it, nobody could ever
// change it. So all of them queue here first, where who came first goes first.

import type { Db } from './db.ts'
import { sql } from './sql.ts'

/** Held until the transaction ends. */
export type Turns = {
  toShare(db: Db, ids: readonly string[]): Promise<unknown>
  toChange(db: Db, ids: readonly string[]): Promise<unknown>
}

/** `kind`: any constant that no other lock has. */
export const createTurns = (kind: number): Turns => ({
  toShare: (db, ids) =>
    db.query(sql`select pg_advisory_xact_lock_shared(${kind}, n.number) from (${numbersOf(ids)}) n`),
  toChange: (db, ids) => db.query(sql`select pg_advisory_xact_lock(${kind}, n.number) from (${numbersOf(ids)}) n`),
})

/** In the order of all, so that no two wait for each other. */
const numbersOf = (ids: readonly string[]) =>
  sql`select distinct hashtext(i.id) as number from unnest(${ids}::text[]) i(id) order by number`
