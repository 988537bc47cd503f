// SQL of dry runs alone. What they read of users, events and messages is asked where those are at home.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'

/** Any constant of our own that no other lock has. */
const DRY_RUN_LOCK = 22_745_571

/** One at a time for an app, over all servers. It ends with the transaction, and so with whoever dies. */
export async function tryLockSimulation(db: Db, appId: AppId): Promise<boolean> {
  const [row] = await db.query<{ taken: boolean }>(
    sql`select pg_try_advisory_xact_lock(${DRY_RUN_LOCK}, hashtext(${appId})) as taken`,
  )
  return row?.taken ?? false
}

/** Between two pages it only thinks, which may take longer than others may be idle. */
export const allowLongIdle = (db: Db) => db.query(sql`set local idle_in_transaction_session_timeout = '120s'`)
