// All SQL on batches that are being sent. A batch is one row of `slices`, and its deliveries stay pending until their
// outcomes are known: updating each of them twice would cost the database about a third more per email. The primary key
// ensures that a shard has one batch at a time.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { DeliveryKey, EmailDimensions } from '../delivery.ts'
import type { MessageId } from '../message.ts'
import { type CountedDelivery, UNPREPARED } from './store.ts'

/** Emails carry their reference from the start: feedback can arrive before the provider's answer. */
export type InFlightDelivery = DeliveryKey & EmailDimensions & { providerRef: string | null }

/** Names the batch of one attempt at one shard. */
export type BatchClaim = { shard: string; fence: number }

/** False when the app was deleted. */
export async function insertBatch(
  db: Db,
  appId: AppId,
  { shard, fence }: BatchClaim,
  list: readonly InFlightDelivery[],
): Promise<boolean> {
  const inserted = await db.query(sql`
    insert into slices (app_id, line, fence, expand_ats, message_ids, subscription_ids, run_ids, provider_refs,
      sending_domains, inbox_providers)
    select a.id, ${shard}, ${fence}::bigint, ${list.map((it) => it.expandAt)}::timestamptz[],
      ${list.map((it) => it.messageId)}::uuid[], ${list.map((it) => it.subscriptionId)}::uuid[],
      ${list.map((it) => it.runId)}::uuid[], ${list.map((it) => it.providerRef)}::text[],
      ${list.map((it) => it.sendingDomain)}::text[], ${list.map((it) => it.inboxProvider)}::text[]
    from apps a
    where a.id = ${appId}
    returning fence`)
  return inserted.length > 0
}

/** False when another worker has recovered the shard and interrupted the batch. */
export async function deleteBatch(db: Db, appId: AppId, { shard, fence }: BatchClaim): Promise<boolean> {
  const deleted = await db.query(sql`
    delete from slices where app_id = ${appId} and line = ${shard} and fence = ${fence} returning fence`)
  return deleted.length > 0
}

/** The messages of a batch that another attempt at this shard left behind. */
export async function findInterrupted(db: Db, appId: AppId, { shard, fence }: BatchClaim): Promise<MessageId[]> {
  const found = await db.query<{ messageIds: MessageId[] }>(sql`
    select s.message_ids from slices s where s.app_id = ${appId} and s.line = ${shard} and s.fence <> ${fence}`)
  return [...new Set(found.flatMap(({ messageIds }) => messageIds))]
}

/** The deliveries of a batch, one row each. */
const each = sql`unnest(s.expand_ats, s.message_ids, s.subscription_ids, s.run_ids, s.provider_refs, s.sending_domains,
    s.inbox_providers)
  as r(expand_at, message_id, subscription_id, run_id, provider_ref, sending_domain, inbox_provider)`

/**
 * Marks these deliveries as unknown, because nobody can tell whether they were sent. Only deliveries of messages that
 * ask for it are sent again. Each keeps the fence of its batch: a worker that was taken for dead may still write its
 * outcomes.
 */
export const interruptBatch = (
  db: Db,
  appId: AppId,
  { shard, fence }: BatchClaim,
  { reason, again }: { reason: string; again: readonly MessageId[] },
  now: Date,
) =>
  db.query<CountedDelivery>(
    sql`
    with s as (
      delete from slices
      where app_id = ${appId} and line = ${shard} and fence <> ${fence}
      returning fence, expand_ats, message_ids, subscription_ids, run_ids, provider_refs, sending_domains, inbox_providers
    )
    update deliveries d
    set state = case when d.message_id = any(${again}::uuid[]) then 'pending' else 'unknown' end,
      reason = ${reason}, attempts = d.attempts + 1, fence = s.fence,
      due_at = case when d.message_id = any(${again}::uuid[]) then ${now}::timestamptz else d.due_at end,
      settled_at = case when d.message_id = any(${again}::uuid[]) then null else ${now}::timestamptz end,
      provider_ref = coalesce(r.provider_ref, d.provider_ref),
      sending_domain = coalesce(r.sending_domain, d.sending_domain), inbox_provider = coalesce(r.inbox_provider, d.inbox_provider)
    from s cross join ${each}
    where d.app_id = ${appId} and d.expand_at = r.expand_at and d.message_id = r.message_id
      and d.subscription_id = r.subscription_id and d.run_id = r.run_id and d.state = 'pending'
    returning d.message_id, d.platform, d.state, d.reason`,
    UNPREPARED,
  )

/** Deliveries of one message that are being sent. */
export const inFlightOf = (appId: AppId, id: MessageId) => sql`
  select r.subscription_id, r.run_id from slices s cross join ${each} where s.app_id = ${appId} and r.message_id = ${id}`

/** Deliveries that are being sent and have one of these references. */
export const inFlightByReference = (appId: AppId, shards: readonly string[], names: readonly string[]) => sql`
  select r.expand_at, r.message_id, r.subscription_id, r.run_id, r.provider_ref, r.sending_domain, r.inbox_provider
  from slices s cross join ${each}
  where s.app_id = ${appId} and s.line = any(${shards}::text[]) and r.provider_ref = any(${names}::text[])`
