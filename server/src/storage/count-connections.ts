import type { Db } from './db.ts'
import { sql } from './sql.ts'

/** `most`: what PostgreSQL lets ordinary users open together. `used`: what is open now, this one included. */
export type Connections = { most: number; used: number }

const MAXIMUM = 'max_connections'
const SETTINGS = [MAXIMUM, 'superuser_reserved_connections', 'reserved_connections']

export async function countConnections(db: Db): Promise<Connections> {
  const [row] = await db.query<Connections>(sql`
    select sum(case when s.name = ${MAXIMUM} then s.setting::integer else -s.setting::integer end)::integer as most,
      (select count(*) from pg_stat_activity a where a.backend_type = 'client backend') as used
    from pg_settings s
    where s.name = any(${SETTINGS}::text[])`)
  return row as Connections
}
