// PostgreSQL lets those who share a row go before one who waits to change it. Of a broadcast there is always somebody who sends, and
// shares the message: nobody could ever cancel it. So all of them queue here first, where who came first goes first.

import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { MessageId } from './message.ts'

/** Any constant of our own that no other lock has. */
const CANCEL_LOCK_KEY = 22_745_573

/** Until the transaction ends. Those of a slice are few: one, mostly. */
export async function lockForSending(db: Db, ids: readonly MessageId[]): Promise<void> {
  for (const id of ids.toSorted())
    await db.query(sql`select pg_advisory_xact_lock_shared(${CANCEL_LOCK_KEY}, hashtext(${id}))`)
}

/** Until the transaction ends nobody begins to send more of them. */
export async function lockForCancel(db: Db, ids: readonly MessageId[]): Promise<void> {
  for (const id of ids.toSorted())
    await db.query(sql`select pg_advisory_xact_lock(${CANCEL_LOCK_KEY}, hashtext(${id}))`)
}
