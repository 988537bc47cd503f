// PostgreSQL grants shared row locks before a waiting exclusive one. Some worker always sends a broadcast and shares
// its message's row, so a cancel would wait forever. Both sides take an advisory lock first, which is granted in the
// order of requests.

import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { MessageId } from './message.ts'

/** Any constant that no other advisory lock uses. */
const CANCEL_LOCK_KEY = 22_745_573

/** Held until the transaction ends. A batch has few messages, mostly one. */
export async function lockForSending(db: Db, ids: readonly MessageId[]): Promise<void> {
  for (const id of ids.toSorted())
    await db.query(sql`select pg_advisory_xact_lock_shared(${CANCEL_LOCK_KEY}, hashtext(${id}))`)
}

/** Until the transaction ends, no worker can start to send more of these messages. */
export async function lockForCancel(db: Db, ids: readonly MessageId[]): Promise<void> {
  for (const id of ids.toSorted())
    await db.query(sql`select pg_advisory_xact_lock(${CANCEL_LOCK_KEY}, hashtext(${id}))`)
}
