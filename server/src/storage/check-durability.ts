import type { Db } from './db.ts'
import { sql } from './sql.ts'

/** Settings without which an acknowledged write can be lost. */
const NEEDED = ['fsync', 'full_page_writes', 'synchronous_commit']

/** Returns the settings that are off, for this session or the whole server. */
export async function findUnsafeSettings(db: Db): Promise<string[]> {
  const found = await db.query<{ name: string }>(sql`
    select name from pg_settings where name = any(${NEEDED}::text[]) and setting = 'off' order by name`)
  return found.map(({ name }) => name)
}

/** Returns PostgreSQL's major version. */
export async function readVersion(db: Db): Promise<number> {
  const [row] = await db.query<{ version: number }>(
    sql`select current_setting('server_version_num')::integer as version`,
  )
  return Math.floor((row?.version ?? 0) / 10_000)
}
