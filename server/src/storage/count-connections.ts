import type { Db } from './db.ts'
import { sql } from './sql.ts'

/** `most`: how many connections ordinary users may open in total. `used`: how many are open now, including this one. */
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
