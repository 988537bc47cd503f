// SQL on receipts of SMS: those recorded with deliveries, and those that wait for their delivery.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { FeedbackDelivery } from '../counts/fact.ts'
import { UNPREPARED } from '../deliver/store.ts'
import type { DeliveryKey } from '../delivery.ts'
import type { SmsReceipt, StoredReceiptState } from './receipt.ts'

export type DeliveryWithReceipt = FeedbackDelivery & { providerRef: string; receipt: StoredReceiptState | null }

/**
 * Locks deliveries in the order of their keys. No provider sends receipts of an SMS from before `since`, so older
 * months are skipped.
 */
export const lockDeliveriesByReference = (db: Db, appId: AppId, references: readonly string[], since: Date) =>
  db.query<DeliveryWithReceipt>(
    sql`
    select expand_at, message_id, subscription_id, run_id, user_id, platform, provider_ref, receipt
    from deliveries
    where app_id = ${appId} and platform = 'SMS' and provider_ref = any(${references}::text[]) and expand_at >= ${since}
    order by expand_at, message_id, subscription_id, run_id
    for update`,
    UNPREPARED,
  )

export const updateReceipts = (
  db: Db,
  appId: AppId,
  deliveries: readonly (DeliveryKey & { receipt: StoredReceiptState })[],
) =>
  db.query(
    sql`
    update deliveries d
    set receipt = r.receipt
    from jsonb_to_recordset(${rows(deliveries)}::jsonb)
      r("expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid, "runId" uuid, receipt text)
    where d.app_id = ${appId} and d.expand_at = r."expandAt" and d.message_id = r."messageId"
      and d.subscription_id = r."subscriptionId" and d.run_id = r."runId"`,
    UNPREPARED,
  )

/** Keeps receipts whose reference is not recorded yet. One that outranks a waiting one replaces it. */
export const insertWaitingReceipts = (db: Db, appId: AppId, receipts: readonly SmsReceipt[], now: Date) =>
  db.query(sql`
    insert into sms_receipts (app_id, reference, state, reason, received_at)
    select a.id, r.reference, r.state, r.reason, ${now}::timestamptz
    from apps a
    cross join jsonb_to_recordset(${rows(receipts)}::jsonb) r(reference text, state text, reason text)
    where a.id = ${appId}
    order by r.reference
    on conflict (app_id, reference) do update set state = excluded.state, reason = excluded.reason
    where array_position(array['unknown', 'failed', 'gone', 'delivered'], sms_receipts.state)
      < array_position(array['unknown', 'failed', 'gone', 'delivered'], excluded.state)`)

export const findWaitingReceipts = (db: Db, appId: AppId, after: string, limit: number) =>
  db.query<SmsReceipt>(sql`
    select reference, state, reason
    from sms_receipts
    where app_id = ${appId} and reference > ${after}
    order by reference
    limit ${limit}`)

export const deleteWaitingReceipts = (db: Db, appId: AppId, references: readonly string[]) =>
  db.query(sql`
    delete from sms_receipts
    where app_id = ${appId} and reference = any(${references}::text[])`)

export const deleteExpiredReceipts = (db: Db, appId: AppId, before: Date) =>
  db.query(sql`delete from sms_receipts where app_id = ${appId} and received_at < ${before}`)
