// SQL on calls of send_webhook nodes that wait to be sent.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../nodes/node.ts'
import type { RunId } from '../runs/run.ts'

export type NewWebhookCall = { id: string; nodeId: NodeId; webhookId: string; runId: RunId; userId: UserId }

export const insertCalls = (db: Db, appId: AppId, journeyId: JourneyId, calls: readonly NewWebhookCall[], now: Date) =>
  db.query(sql`
    insert into journey_calls (app_id, id, journey_id, node_id, run_id, user_id, webhook_id, called_at, due_at)
    select a.id, r.id, ${journeyId}::uuid, r."nodeId", r."runId", r."userId", r."webhookId", ${now}::timestamptz,
      ${now}::timestamptz
    from apps a
    cross join jsonb_to_recordset(${rows(calls)}::jsonb)
      as r(id uuid, "nodeId" uuid, "webhookId" uuid, "runId" uuid, "userId" uuid)
    where a.id = ${appId}`)

export type WebhookCall = NewWebhookCall & { journeyId: JourneyId; calledAt: Date; attempts: number }

/** Those that have waited longest. Only the worker that holds the webhook's job sends them. */
export const findDueCalls = (db: Db, appId: AppId, webhookId: string, now: Date, limit: number) =>
  db.query<WebhookCall>(sql`
    select c.id, c.journey_id, c.node_id, c.run_id, c.user_id, c.webhook_id, c.called_at, c.attempts
    from journey_calls c
    where c.app_id = ${appId} and c.webhook_id = ${webhookId} and c.due_at <= ${now}
    order by c.due_at
    limit ${limit}`)

export async function findNextCall(db: Db, appId: AppId, webhookId: string): Promise<Date | undefined> {
  const [found] = await db.query<{ dueAt: Date }>(sql`
    select c.due_at from journey_calls c
    where c.app_id = ${appId} and c.webhook_id = ${webhookId}
    order by c.due_at
    limit 1`)
  return found?.dueAt
}

/** Answers the ids of the deleted calls. A journey that ended meanwhile has deleted its own. */
export const deleteCalls = (db: Db, appId: AppId, ids: readonly string[]) =>
  db.query<{ id: string }>(sql`
    delete from journey_calls c where c.app_id = ${appId} and c.id = any(${ids}::uuid[]) returning c.id`)

export const deleteCallsOfJourney = (db: Db, appId: AppId, journeyId: JourneyId) =>
  db.query(sql`delete from journey_calls where app_id = ${appId} and journey_id = ${journeyId}`)

export const deleteCallsOfUser = (db: Db, appId: AppId, userId: UserId) =>
  db.query(sql`delete from journey_calls where app_id = ${appId} and user_id = ${userId}`)

export const deferCalls = (db: Db, appId: AppId, calls: readonly { id: string; dueAt: Date }[]) =>
  db.query(sql`
    update journey_calls c set due_at = r."dueAt", attempts = c.attempts + 1
    from jsonb_to_recordset(${rows(calls)}::jsonb) as r(id uuid, "dueAt" timestamptz)
    where c.app_id = ${appId} and c.id = r.id`)
