// All SQL on journey webhooks.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { JourneyWebhook, JourneyWebhookId } from './webhook.ts'

const columns = sql`w.id, w.name, w.url, w.secret, w.previous_secret, w.previous_until, w.created_at, w.updated_at`

export const findWebhooks = (db: Db, appId: AppId) =>
  db.query<JourneyWebhook>(sql`
    select ${columns} from journey_webhooks w where w.app_id = ${appId} order by w.created_at, w.id`)

export async function findWebhook(db: Db, appId: AppId, id: JourneyWebhookId): Promise<JourneyWebhook | undefined> {
  const [found] = await db.query<JourneyWebhook>(sql`
    select ${columns} from journey_webhooks w where w.app_id = ${appId} and w.id = ${id}`)
  return found
}

export async function lockWebhook(db: Db, appId: AppId, id: JourneyWebhookId): Promise<JourneyWebhook | undefined> {
  const [found] = await db.query<JourneyWebhook>(sql`
    select ${columns} from journey_webhooks w where w.app_id = ${appId} and w.id = ${id} for update`)
  return found
}

/** Answers those that exist. Until the transaction ends nobody changes or deletes them. */
export const lockWebhooksForShare = (db: Db, appId: AppId, ids: readonly JourneyWebhookId[]) =>
  db.query<{ id: JourneyWebhookId }>(sql`
    select w.id from journey_webhooks w where w.app_id = ${appId} and w.id = any(${ids}::uuid[]) order by w.id for share`)

export const insertWebhook = (db: Db, appId: AppId, webhook: JourneyWebhook) =>
  db.query(sql`
    insert into journey_webhooks (app_id, id, name, url, secret, created_at, updated_at)
    select a.id, ${webhook.id}::uuid, ${webhook.name}, ${webhook.url}, ${webhook.secret}, ${webhook.createdAt}::timestamptz,
      ${webhook.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}`)

export const updateWebhook = (db: Db, appId: AppId, webhook: JourneyWebhook) =>
  db.query(sql`
    update journey_webhooks
    set name = ${webhook.name}, url = ${webhook.url}, secret = ${webhook.secret}, previous_secret = ${webhook.previousSecret},
      previous_until = ${webhook.previousUntil}, updated_at = ${webhook.updatedAt}
    where app_id = ${appId} and id = ${webhook.id}`)

export const deleteWebhook = (db: Db, appId: AppId, id: JourneyWebhookId) =>
  db.query(sql`delete from journey_webhooks where app_id = ${appId} and id = ${id}`)
