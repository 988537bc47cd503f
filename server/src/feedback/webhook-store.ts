// All SQL on event webhooks and on the events that wait to be sent to them.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, type Sql, sql } from '../storage/sql.ts'
import type { StoredEvent, Webhook, WebhookId } from './webhook.ts'

const columns = sql`id, url, kinds, secret, previous_secret, previous_until, disabled_at, disabled_reason, failing_since,
  failures, last_failure, next_try_at, dropped, created_at, updated_at`

export const findWebhooks = (db: Db, appId: AppId) =>
  db.query<Webhook>(sql`select ${columns} from event_webhooks where app_id = ${appId} order by created_at, id`)

export async function findWebhook(db: Db, appId: AppId, id: WebhookId): Promise<Webhook | undefined> {
  const [found] = await db.query<Webhook>(sql`
    select ${columns} from event_webhooks where app_id = ${appId} and id = ${id}`)
  return found
}

export async function lockWebhook(db: Db, appId: AppId, id: WebhookId): Promise<Webhook | undefined> {
  const [found] = await db.query<Webhook>(sql`
    select ${columns} from event_webhooks where app_id = ${appId} and id = ${id} for update`)
  return found
}

export const insertWebhook = (
  db: Db,
  appId: AppId,
  it: Pick<Webhook, 'id' | 'url' | 'kinds' | 'secret' | 'createdAt' | 'updatedAt'>,
) =>
  db.query(sql`
    insert into event_webhooks (app_id, id, url, kinds, secret, created_at, updated_at)
    select a.id, ${it.id}::uuid, ${it.url}, ${it.kinds}::text[], ${it.secret}, ${it.createdAt}::timestamptz,
      ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}`)

/** Writes the whole row; the caller has read it under its lock. */
export const updateWebhook = (db: Db, appId: AppId, it: Webhook) =>
  db.query(sql`
    update event_webhooks
    set url = ${it.url}, kinds = ${it.kinds}, secret = ${it.secret}, previous_secret = ${it.previousSecret},
      previous_until = ${it.previousUntil}, disabled_at = ${it.disabledAt}, disabled_reason = ${it.disabledReason},
      failing_since = ${it.failingSince}, failures = ${it.failures}, last_failure = ${it.lastFailure},
      next_try_at = ${it.nextTryAt}, dropped = ${it.dropped}, updated_at = ${it.updatedAt}
    where app_id = ${appId} and id = ${it.id}`)

export const deleteWebhook = (db: Db, appId: AppId, id: WebhookId) =>
  db.query(sql`delete from event_webhooks where app_id = ${appId} and id = ${id}`)

/** Webhooks that have events and may be tried now. Reads every app's few webhooks, without locks. */
export const findDueWebhooksAcrossApps = (db: Db, now: Date) =>
  db.query<{ appId: AppId; id: WebhookId }>(sql`
    select w.app_id, w.id
    from event_webhooks w
    where w.disabled_at is null and (w.next_try_at is null or w.next_try_at <= ${now})
      and exists (select 1 from delivery_events e where e.app_id = w.app_id and e.webhook_id = w.id)`)

const eventColumns = sql`id, at, kind, message_id, subscription_id, user_id, platform, reason, count`

/** The batch that was sent but not accepted yet, if there is one. */
export async function findTravelling(
  db: Db,
  appId: AppId,
  webhookId: WebhookId,
): Promise<{ batchId: string; events: StoredEvent[] } | undefined> {
  const found = await db.query<StoredEvent & { batchId: string }>(sql`
    select batch_id, ${eventColumns}
    from delivery_events
    where app_id = ${appId} and webhook_id = ${webhookId} and batch_id is not null
    order by at, id`)
  const batchId = found[0]?.batchId
  return batchId === undefined ? undefined : { batchId, events: found.map(({ batchId, ...event }) => event) }
}

export const findNextEvents = (db: Db, appId: AppId, webhookId: WebhookId, limit: number) =>
  db.query<StoredEvent>(sql`
    select ${eventColumns}
    from delivery_events
    where app_id = ${appId} and webhook_id = ${webhookId}
    order by at, id
    limit ${limit}`)

export const markTravelling = (
  db: Db,
  appId: AppId,
  webhookId: WebhookId,
  events: readonly Pick<StoredEvent, 'at' | 'id'>[],
  batchId: string,
) =>
  db.query(sql`
    update delivery_events e
    set batch_id = ${batchId}
    from jsonb_to_recordset(${rows(events.map(({ at, id }) => ({ at, id })))}::jsonb) r(at timestamptz, id uuid)
    where e.app_id = ${appId} and e.webhook_id = ${webhookId} and e.at = r.at and e.id = r.id`)

export const deleteTravelled = (db: Db, appId: AppId, webhookId: WebhookId, batchId: string) =>
  db.query(sql`
    delete from delivery_events
    where app_id = ${appId} and webhook_id = ${webhookId} and batch_id = ${batchId}`)

/**
 * Deletes the oldest events, optionally only those before `before`, and at most `limit`. Returns how many it deleted.
 */
export async function deleteOldEvents(
  db: Db,
  appId: AppId,
  webhookId: WebhookId,
  before: Date | undefined,
  limit: number,
): Promise<number> {
  const which = sql`app_id = ${appId} and webhook_id = ${webhookId} 
    and (${before ?? null}::timestamptz is null or at < ${before ?? null})`
  const [last] = await db.query<{ at: Date; id: string }>(sql`
    select at, id
    from delivery_events
    where ${which}
    order by at, id
    offset ${limit - 1} limit 1`)
  const upTo: Sql = last ? sql`and (at, id) <= (${last.at}::timestamptz, ${last.id}::uuid)` : sql``
  const deleted = await db.query(sql`delete from delivery_events where ${which} ${upTo} returning id`)
  return deleted.length
}

/** Webhooks with old events. Such events remain when they were inserted while their webhook was being deleted. */
export const findOldEventsAcrossApps = (db: Db, before: Date) =>
  db.query<{ appId: AppId; webhookId: WebhookId }>(sql`
    select distinct app_id, webhook_id
    from delivery_events
    where at < ${before}`)
