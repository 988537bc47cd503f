// SQL on the pending deliveries of a message that is being canceled.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import { inFlightOf } from '../deliver/batch-store.ts'
import { type CountedDelivery, UNPREPARED } from '../deliver/store.ts'
import type { MessageId } from '../message.ts'

/** Closes some pending deliveries of a canceled message. Those in flight are left to the worker that sends them. */
export const closePending = (db: Db, appId: AppId, id: MessageId, expandAt: Date, now: Date, limit: number) =>
  db.query<CountedDelivery>(
    sql`
    update deliveries
    set state = 'canceled', reason = null, settled_at = ${now}
    where app_id = ${appId} and expand_at = ${expandAt} and (tableoid, ctid) in (
      select tableoid, ctid from deliveries
      where app_id = ${appId} and expand_at = ${expandAt} and message_id = ${id} and state = 'pending'
        and (subscription_id, run_id) not in (${inFlightOf(appId, id)})
      limit ${limit}
      for update skip locked)
    returning message_id, platform, state, reason`,
    UNPREPARED,
  )

/** Needed because closing skips deliveries that a worker has locked while it decides about them. */
export async function hasPending(db: Db, appId: AppId, id: MessageId, expandAt: Date): Promise<boolean> {
  const pending = await db.query(
    sql`
    select 1 from deliveries d
    where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${id} and d.state = 'pending'
      and (d.subscription_id, d.run_id) not in (${inFlightOf(appId, id)})
    limit 1`,
    UNPREPARED,
  )
  return pending.length > 0
}

/** How many deliveries are pending and not in flight, in one snapshot. */
export async function countWaiting(db: Db, appId: AppId, id: MessageId): Promise<number> {
  const [waiting] = await db.query<{ count: number }>(sql`
    select (
      select coalesce(sum(c.count), 0) from message_counts c
      where c.app_id = ${appId} and c.message_id = ${id} and c.state = 'pending'
    ) - (select count(*) from (${inFlightOf(appId, id)}) u) as count`)
  return waiting?.count ?? 0
}
