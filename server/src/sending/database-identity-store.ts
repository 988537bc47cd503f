// What identifies a database, from PostgreSQL's catalogue.

import { type Db, sqlState } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

/** Assigned by initdb. Null if the operator of the database does not permit reading it. */
export async function findSystemIdentifier(db: Db): Promise<string | null> {
  try {
    const [found] = await db.query<{ system: string }>(
      sql`select (pg_control_system()).system_identifier::text as system`,
    )
    return found?.system ?? null
  } catch (error) {
    if (sqlState(error)?.startsWith('42')) return null
    throw error
  }
}

/** A database copied from another has another oid, and so does a table that is loaded from a dump. */
export async function findObjectIds(db: Db): Promise<{ database: string; table: string }> {
  const [found] = await db.query<{ database: string; table: string }>(sql`
    select d.oid::text as database, 'schema_migrations'::regclass::oid::text as table
    from pg_database d
    where d.datname = current_database()`)
  if (!found) throw new Error('the database does not know itself')
  return found
}
