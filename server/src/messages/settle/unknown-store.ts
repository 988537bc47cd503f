// All SQL on deliveries with unknown outcomes.

import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import { type CountedDelivery, UNPREPARED } from '../deliver/store.ts'
import type { DeliveryKey } from '../delivery.ts'
import type { Message, MessageId } from '../message.ts'

export type UnknownDelivery = DeliveryKey & {
  userId: UserId
  platform: CountedDelivery['platform']
  reason: string | null
  attempts: number
  settledAt: Date
}

/** The position of a delivery in the list of its message's deliveries. */
export type DeliveryCursor = Pick<DeliveryKey, 'subscriptionId' | 'runId'>

export const findUnknown = (db: Db, appId: AppId, id: MessageId, limit: number, after: DeliveryCursor | undefined) =>
  db.query<UnknownDelivery>(
    sql`
    select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.reason, d.attempts, d.settled_at
    from deliveries d
    where d.app_id = ${appId} and d.message_id = ${id} and d.state = 'unknown'
      and (d.subscription_id, d.run_id) > (${after?.subscriptionId ?? FIRST_ID}::uuid, ${after?.runId ?? FIRST_ID}::uuid)
    order by d.subscription_id, d.run_id
    limit ${limit}`,
    UNPREPARED,
  )

/** Returns what to report about a message; undefined when no outcome is unknown, or it was reported before. */
export async function markUnknownsReported(
  db: Db,
  appId: AppId,
  id: MessageId,
  now: Date,
): Promise<(Pick<Message, 'name' | 'channel'> & { count: number }) | undefined> {
  const [report] = await db.query<Pick<Message, 'name' | 'channel'> & { count: number }>(
    sql`
    update messages m
    set unknowns_told_at = ${now}
    from (
      select sum(c.count)::bigint as count from message_counts c
      where c.app_id = ${appId} and c.message_id = ${id} and c.state = 'unknown') c
    where m.app_id = ${appId} and m.id = ${id} and m.unknowns_told_at is null and c.count > 0
    returning m.name, m.channel, c.count`,
    UNPREPARED,
  )
  return report
}

/** After a resend, unknown outcomes are reported once more. */
export const clearUnknownsReported = (db: Db, appId: AppId, id: MessageId) =>
  db.query(sql`update messages m set unknowns_told_at = null where m.app_id = ${appId} and m.id = ${id}`)

/** Sorts before every id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

type MessageKey = { messageId: MessageId; expandAt: Date }
/** `countedReason`: the reason under which it was counted before. */
type ResolvedDelivery = CountedDelivery & { shard: string; countedReason: string | null }

/** Clears the fence: the interrupted attempt may no longer write outcomes of a delivery that is sent again. */
export const resendUnknownRows = (
  db: Db,
  appId: AppId,
  { messageId, expandAt }: MessageKey,
  only: readonly SubscriptionId[] | undefined,
  now: Date,
  expiresAt: Date,
) =>
  db.query<ResolvedDelivery>(
    sql`
    with found as materialized (
      select d.subscription_id, d.run_id, d.reason
      from deliveries d
      where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${messageId} and d.state = 'unknown'
        and (${only ?? null}::uuid[] is null or d.subscription_id = any(${only ?? null}::uuid[]))
      order by d.subscription_id, d.run_id
      for update
    )
    update deliveries d
    set state = 'pending', reason = null, due_at = ${now}, expires_at = greatest(d.expires_at, ${expiresAt}), settled_at = null,
      fence = null
    from found f
    where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${messageId}
      and d.subscription_id = f.subscription_id and d.run_id = f.run_id
    returning d.message_id, d.platform, d.state, d.reason, d.line as shard, f.reason as counted_reason`,
    UNPREPARED,
  )

export const closeUnknownRows = (
  db: Db,
  appId: AppId,
  { messageId, expandAt }: MessageKey,
  only: readonly SubscriptionId[] | undefined,
  now: Date,
) =>
  db.query<ResolvedDelivery & Pick<UnknownDelivery, 'subscriptionId' | 'userId'>>(
    sql`
    with found as materialized (
      select d.subscription_id, d.run_id, d.reason
      from deliveries d
      where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${messageId} and d.state = 'unknown'
        and (${only ?? null}::uuid[] is null or d.subscription_id = any(${only ?? null}::uuid[]))
      order by d.subscription_id, d.run_id
      for update
    )
    update deliveries d
    set state = 'failed', reason = 'closed', settled_at = ${now}, fence = null
    from found f
    where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${messageId}
      and d.subscription_id = f.subscription_id and d.run_id = f.run_id
    returning d.message_id, d.subscription_id, d.user_id, d.platform, d.state, d.reason, d.line as shard, f.reason as counted_reason`,
    UNPREPARED,
  )
