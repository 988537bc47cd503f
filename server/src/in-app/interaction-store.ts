// The SQL that counts what devices report: in total and by unique subscriptions.

import type { AppId, SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'
import type { InAppMessageId } from './message.ts'

export type InteractionKind = 'impression' | 'click' | 'page'

export type Interaction = {
  messageId: InAppMessageId
  subscriptionId: SubscriptionId
  what: InteractionKind
  /** The id of the variant, as the device reports it, and what was clicked or which page was opened. */
  variant: string | null
  target: string | null
}

/** What was missing; null when the report was counted. */
export type InteractionResult = { lacks: 'message' | 'subscription' | null }

/**
 * Counts reports for the message, for the variant, and for the click or page, as far as the message has them. A row of
 * in_app_seen that this very statement inserts is new, and counts as one more unique. All rows are written in the order
 * of their keys, so that concurrent batches wait for each other instead of deadlocking.
 */
export const insertInteractions = (
  db: Db,
  appId: AppId,
  reports: readonly Interaction[],
): Promise<InteractionResult[]> =>
  db.query<InteractionResult>(sql`
    with found as materialized (
      select r.n, r.message_id, r.subscription_id, r.what, m.id is not null as has_message, s.user_id,
        case when exists (
          select 1 from in_app_variants v
          where v.app_id = ${appId} and v.in_app_message_id = m.id and v.id::text = lower(r.variant))
          then lower(r.variant) end as variant,
        case when r.target = any(case r.what when 'click' then m.click_labels else m.page_labels end) then r.target end as target
      from jsonb_to_recordset(${rows(
        reports.map(({ messageId, subscriptionId, what, variant, target }, n) => ({
          n,
          message_id: messageId,
          subscription_id: subscriptionId,
          what,
          variant,
          target,
        })),
      )}::jsonb) as r(n integer, message_id uuid, subscription_id uuid, what text, variant text, target text)
      left join lateral (
        select m.id, m.click_labels, m.page_labels from in_app_messages m
        where m.app_id = ${appId} and m.id = r.message_id offset 0) m on true
      left join lateral (
        select s.user_id from subscriptions s where s.app_id = ${appId} and s.id = r.subscription_id offset 0) s on true
    ), parts as materialized (
      select f.message_id, f.subscription_id, f.user_id, f.what, p.part, p.label
      from found f
      cross join lateral (values ('message', ''), ('variant', f.variant), ('target', f.target)) as p(part, label)
      where f.has_message and f.user_id is not null and p.label is not null
    ), fresh as (
      insert into in_app_seen (app_id, in_app_message_id, subscription_id, what, part, label, user_id)
      select distinct on (p.message_id, p.subscription_id, p.what, p.part, p.label)
        a.id, p.message_id, p.subscription_id, p.what, p.part, p.label, p.user_id
      from apps a cross join parts p
      where a.id = ${appId}
      order by p.message_id, p.subscription_id, p.what, p.part, p.label
      on conflict do nothing
      returning in_app_message_id, what, part, label
    ), sums as (
      select p.message_id, p.what, p.part, p.label, sum(p.total) as total, sum(p.uniques) as uniques
      from (
        select p.message_id, p.what, p.part, p.label, 1 as total, 0 as uniques from parts p
        union all
        select f.in_app_message_id, f.what, f.part, f.label, 0, 1 from fresh f
      ) p
      group by p.message_id, p.what, p.part, p.label
    ), counted as (
      insert into in_app_counts (app_id, in_app_message_id, what, part, label, total, uniques)
      select a.id, s.message_id, s.what, s.part, s.label, s.total, s.uniques
      from apps a cross join sums s
      where a.id = ${appId}
      order by s.message_id, s.what, s.part, s.label
      on conflict (app_id, in_app_message_id, what, part, label)
        do update set total = in_app_counts.total + excluded.total, uniques = in_app_counts.uniques + excluded.uniques
    )
    select case when not f.has_message then 'message' when f.user_id is null then 'subscription' end as lacks
    from found f
    order by f.n`)

export type InteractionCount = {
  what: InteractionKind
  part: 'message' | 'variant' | 'target'
  label: string
  total: number
  uniques: number
}

export const findInteractionCounts = (db: Db, appId: AppId, id: InAppMessageId) =>
  db.query<InteractionCount>(sql`
    select c.what, c.part, c.label, c.total, c.uniques from in_app_counts c
    where c.app_id = ${appId} and c.in_app_message_id = ${id}
    order by c.label collate "C"`)

export const deleteInteractionCounts = (db: Db, appId: AppId, id: InAppMessageId) =>
  db.query(sql`delete from in_app_counts where app_id = ${appId} and in_app_message_id = ${id}`)

/** Deletes some of the rows of those who saw a message. A result below `limit` means that none are left. */
export async function deleteSeen(db: Db, appId: AppId, id: InAppMessageId, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from in_app_seen
    where app_id = ${appId} and ctid = any(array(
      select ctid from in_app_seen
      where app_id = ${appId} and in_app_message_id = ${id}
      limit ${limit}
      for update skip locked))
    returning user_id`)
  return deleted.length
}

export const deleteSeenByUser = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from in_app_seen where app_id = ${appId} and user_id = ${userId}`)
