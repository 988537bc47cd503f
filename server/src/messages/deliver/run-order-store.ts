// SQL on the order of one run's deliveries to the same subscription. All of them are in one shard, so the earlier one
// is settled before the next one is fetched.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { RunId } from '../message.ts'

/** Deliveries before `d` that are not settled. Canceled ones are never sent, even if they are not closed yet. */
const unsettledBefore = (appId: AppId): Sql => sql`
  from deliveries p
  where p.app_id = ${appId} and p.run_id = d.run_id and p.subscription_id = d.subscription_id and p.state = 'pending'
    and p.step > 0 and p.step < d.step and p.line = d.line
    and (select m.state from messages m where m.app_id = ${appId} and m.id = p.message_id) <> 'canceled'`

export const isNextOfRun = (appId: AppId): Sql => sql`(d.step <= 1 or not exists (select 1 ${unsettledBefore(appId)}))`

/**
 * Gives the deliveries that wait for a postponed one the same due time, so that the shard is not run for them over and
 * over; their order does not depend on it. Limited to these runs, if given. Returns how many were changed.
 */
export async function postponeFollowers(
  db: Db,
  appId: AppId,
  shard: string,
  now: Date,
  { runIds, limit }: { runIds?: readonly RunId[]; limit: number },
): Promise<number> {
  const changed = await db.query(
    sql`
    with followers as materialized (
      select d.expand_at, d.message_id, d.subscription_id, d.run_id, e.due_at
      from deliveries d
      cross join lateral (select max(p.due_at) as due_at ${unsettledBefore(appId)}) e
      where d.app_id = ${appId} and d.line = ${shard} and d.state = 'pending' and d.step > 1 and d.due_at <= ${now}
        and (${runIds ?? null}::uuid[] is null or d.run_id = any(${runIds ?? null}::uuid[])) and e.due_at > ${now}
      limit ${limit}
    )
    update deliveries d set due_at = f.due_at
    from followers f
    where d.app_id = ${appId} and d.expand_at = f.expand_at and d.message_id = f.message_id
      and d.subscription_id = f.subscription_id and d.run_id = f.run_id and d.state = 'pending'
    returning 1`,
    { prepare: false },
  )
  return changed.length
}
