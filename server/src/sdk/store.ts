import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

/** The app, if the server has exactly one. */
export async function findOnlyApp(db: Db): Promise<AppId | undefined> {
  const [first, second] = await db.query<{ id: AppId }>(sql`select id from apps limit 2`)
  return second ? undefined : first?.id
}
