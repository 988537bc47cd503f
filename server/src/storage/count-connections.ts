import type { Db } from './db.ts'
import { sql } from './sql.ts'

/** `most`: what PostgreSQL lets ordinary users open together. `used`: what is open now, this one included. */
export type Connections = { most: number; used: number }

const RESERVED = ['superuser_reserved_connections', 'reserved_connections']

export async function countConnections(db: Db): Promise<Connections> {
  const [row] = await db.query<Connections>(sql`
    select current_setting('max_connections')::integer
      - (select coalesce(sum(setting::integer), 0) from pg_settings where name = any(${RESERVED}::text[])) as most,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as used`)
  return row as Connections
}
