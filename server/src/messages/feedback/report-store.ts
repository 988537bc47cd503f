// SQL on what devices report about deliveries, and on the counts of facts.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { FactCount, FeedbackDelivery } from '../counts/fact.ts'
import { UNPREPARED } from '../deliver/store.ts'
import type { DeliveryKey } from '../delivery.ts'
import type { MessageId } from '../message.ts'

/** Returns a part of the key of each message's deliveries. Messages that are not expanded yet are left out. */
export async function findExpandTimes(
  db: Db,
  appId: AppId,
  ids: readonly MessageId[],
): Promise<ReadonlyMap<MessageId, Date>> {
  const found = await db.query<{ id: MessageId; expandAt: Date }>(sql`
    select id, expand_at
    from messages
    where app_id = ${appId} and id = any(${ids}::uuid[]) and expand_at is not null`)
  return new Map(found.map(({ id, expandAt }) => [id, expandAt]))
}

/** When the delivery was first reported as received and clicked. */
export type ReportTimes = { receivedAt: Date | null; clickedAt: Date | null }

export type DeliveryPair = { expandAt: Date; messageId: MessageId; subscriptionId: SubscriptionId }

export type ReportedDelivery = FeedbackDelivery & ReportTimes & { attempts: number; dueAt: Date }

/** The deliveries of each pair, one per run, that may have reached the recipient; locked in the order of their keys. */
export const lockReportedDeliveries = (db: Db, appId: AppId, pairs: readonly DeliveryPair[]) =>
  db.query<ReportedDelivery>(
    sql`
    select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.received_at, d.clicked_at,
      d.attempts, d.due_at
    from deliveries d
    join jsonb_to_recordset(${rows(pairs)}::jsonb) r("expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid)
      on d.expand_at = r."expandAt" and d.message_id = r."messageId" and d.subscription_id = r."subscriptionId"
    where d.app_id = ${appId} and d.state in ('pending', 'sent', 'unknown')
    order by d.expand_at, d.message_id, d.subscription_id, d.run_id
    for update of d`,
    UNPREPARED,
  )

export const writeReports = (db: Db, appId: AppId, deliveries: readonly (DeliveryKey & ReportTimes)[]) =>
  db.query(
    sql`
    update deliveries d
    set received_at = r."receivedAt", clicked_at = r."clickedAt"
    from jsonb_to_recordset(${rows(deliveries)}::jsonb) r("expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid,
      "runId" uuid, "receivedAt" timestamptz, "clickedAt" timestamptz)
    where d.app_id = ${appId} and d.expand_at = r."expandAt" and d.message_id = r."messageId"
      and d.subscription_id = r."subscriptionId" and d.run_id = r."runId"`,
    UNPREPARED,
  )

/**
 * A count is negative where a fact replaces another. Pass each key once; they are written in the order of their keys.
 */
export const addFacts = (db: Db, appId: AppId, facts: readonly FactCount[]) =>
  db.query(sql`
    insert into message_counts (app_id, message_id, platform, state, part, count)
    select a.id, r."messageId", r.platform, r.fact, 0, r.count
    from apps a
    cross join jsonb_to_recordset(${rows(facts)}::jsonb) r("messageId" uuid, platform text, fact text, count bigint)
    where a.id = ${appId}
    order by r."messageId", r.platform, r.fact
    on conflict (app_id, message_id, platform, state, reason, part)
    do update set count = message_counts.count + excluded.count`)
