// All SQL on how many deliveries of a message are in which state. Counts change in the transaction that changes the
// deliveries.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { type DeliveryState, deliveryStates, type Platform } from '../delivery.ts'
import type { MessageId } from '../message.ts'
import type { Fact } from './fact.ts'

export type CountChange = {
  messageId: MessageId
  platform: Platform
  /** A state of deliveries, or a fact counted beside the states. */
  state: DeliveryState | Fact
  reason: string | null
  count: number
}

type Counted = Omit<CountChange, 'count'>

/** The changes for deliveries that went from one state to their current one. */
export const transitionsFrom = (
  from: { state: DeliveryState; reason?: string },
  list: readonly Counted[],
): CountChange[] =>
  groupConsecutive(list).flatMap(({ messageId, platform, state, reason, count }) => [
    { messageId, platform, state: from.state, reason: from.reason ?? null, count: -count },
    { messageId, platform, state, reason, count },
  ])

/** Deliveries of a batch are nearly all alike: equal ones in a row become one change. */
export function groupConsecutive(list: readonly Counted[]): CountChange[] {
  const runs: CountChange[] = []
  for (const { messageId, platform, state, reason } of list) {
    const last = runs.at(-1)
    const isAlike =
      last?.messageId === messageId && last.platform === platform && last.state === state && last.reason === reason
    if (isAlike) last.count++
    else runs.push({ messageId, platform, state, reason, count: 1 })
  }
  return runs
}

/** Pending deliveries are counted without their reason, which is in their rows. */
const countedReason = ({ state, reason }: Pick<CountChange, 'state' | 'reason'>) =>
  state === 'pending' ? '' : (reason ?? '')

/** Sums up changes, so that a batch writes each counter once and all writers lock counters in the same order. */
function sumChanges(changes: readonly CountChange[]) {
  const sums = new Map<string, CountChange & { reason: string }>()
  for (const change of changes) {
    const reason = countedReason(change)
    const key = [change.messageId, change.platform, change.state, reason].join('\n')
    const sum = sums.get(key)
    if (sum) sum.count += change.count
    else sums.set(key, { ...change, reason })
  }
  return [...sums]
    .filter(([, { count }]) => count !== 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, sum]) => sum)
}

export async function changeCounts(db: Db, appId: AppId, part: number, changes: readonly CountChange[]): Promise<void> {
  const sums = sumChanges(changes)
  if (sums.length === 0) return
  await db.query(sql`
    insert into message_counts (app_id, message_id, platform, state, reason, part, count)
    select a.id, r."messageId", r.platform, r.state, r.reason, ${part}::smallint, r.count
    from apps a
    cross join jsonb_to_recordset(${rows(sums)}::jsonb)
      as r("messageId" uuid, platform text, state text, reason text, count bigint)
    where a.id = ${appId}
    on conflict (app_id, message_id, platform, state, reason, part) do update
    set count = message_counts.count + excluded.count`)
}

/** Returns those of the messages that are expanded and have no pending deliveries. */
export async function findSettled(db: Db, appId: AppId, ids: readonly MessageId[]): Promise<MessageId[]> {
  const found = await db.query<{ id: MessageId }>(sql`
    select m.id
    from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and m.state = 'sending' and not exists (
      select from message_counts c
      where c.app_id = ${appId} and c.message_id = m.id and c.state = 'pending'
      having sum(c.count) > 0)`)
  return found.map(({ id }) => id)
}

/** Whether any message of the app ever reached one of these platforms. Reads all its counts, so call it rarely. */
export async function hasEverSent(db: Db, appId: AppId, platforms: readonly string[]): Promise<boolean> {
  const found = await db.query(sql`
    select 1 from message_counts c
    where c.app_id = ${appId} and c.platform = any(${platforms}::text[]) and c.state = 'sent' and c.count > 0
    limit 1`)
  return found.length > 0
}

export type Miscount = { platform: string; state: string; reason: string; counted: number; present: number }

/** Finds differences between the counts of a message and its deliveries. */
export const findMiscounts = (db: Db, appId: AppId, id: MessageId, expandAt: Date) =>
  db.query<Miscount>(sql`
    with counted as (
      select c.platform, c.state, c.reason, sum(c.count)::bigint as count
      from message_counts c
      where c.app_id = ${appId} and c.message_id = ${id} and c.state = any(${deliveryStates}::text[])
      group by c.platform, c.state, c.reason
    ), present as (
      select d.platform, d.state,
        case when d.state = 'pending' then '' else coalesce(d.reason, '') end as reason, count(*) as count
      from deliveries d
      where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${id}
      group by 1, 2, 3
    )
    select coalesce(c.platform, p.platform) as platform, coalesce(c.state, p.state) as state,
      coalesce(c.reason, p.reason) as reason, coalesce(c.count, 0) as counted, coalesce(p.count, 0) as present
    from counted c full join present p on p.platform = c.platform and p.state = c.state and p.reason = c.reason
    where coalesce(c.count, 0) <> coalesce(p.count, 0)`)

export const deleteCounts = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query(sql`delete from message_counts c where c.app_id = ${appId} and c.message_id = any(${ids}::uuid[])`)
