// SQL on the order in which one run's deliveries to the same subscription go out. All of them are in one line, so that whoever works
// through it settles the earlier one before it finds the next.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type Sql, sql } from '../../storage/sql.ts'
import type { RunId } from '../message.ts'

/** Those before `d` that are not settled. What was canceled is never sent, even if nobody has closed it yet. */
const unsettledBefore = (appId: AppId): Sql => sql`
  from deliveries p
  where p.app_id = ${appId} and p.run_id = d.run_id and p.subscription_id = d.subscription_id and p.state = 'pending'
    and p.step > 0 and p.step < d.step and p.line = d.line
    and (select m.state from messages m where m.app_id = ${appId} and m.id = p.message_id) <> 'canceled'`

export const isNextOfRun = (appId: AppId): Sql => sql`(d.step <= 1 or not exists (select 1 ${unsettledBefore(appId)}))`

/**
 * What waits for one that was put off is due with it, so that the line is not gone through for it again and again. The order does not
 * depend on it. Answers how many; of these runs only, where they are given.
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
