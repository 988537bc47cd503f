// The outbox of delivery events. The feedback domain sends them.

import { type AppId, newId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { DeliveryEvent, EventKind, UnknownEvent } from './delivery-event.ts'

/**
 * Call it in the transaction that changes the deliveries. Writes one row for each event webhook that wants the kind. If
 * there are many events, ask `findWantedEvents` first to spare the statement.
 */
export async function insertDeliveryEvents(db: Db, appId: AppId, events: readonly DeliveryEvent[]): Promise<void> {
  if (events.length === 0) return
  await db.query(sql`
    insert into delivery_events (app_id, webhook_id, at, id, kind, message_id, subscription_id, user_id, platform, reason)
    select a.id, w.id, r.at, r.id, r.kind, r."messageId", r."subscriptionId", r."userId", r.platform, r.reason
    from apps a
    cross join event_webhooks w
    cross join jsonb_to_recordset(${rows(events.map((event) => ({ ...event, id: newId() })))}::jsonb)
      r(id uuid, at timestamptz, kind text, "messageId" uuid, "subscriptionId" uuid, "userId" uuid, platform text, reason text)
    where a.id = ${appId} and w.app_id = ${appId} and w.disabled_at is null and r.kind = any(w.kinds)`)
}

export const insertUnknownEvent = (db: Db, appId: AppId, { messageId, count, at }: UnknownEvent) =>
  db.query(sql`
    insert into delivery_events (app_id, webhook_id, at, id, kind, message_id, count)
    select a.id, w.id, ${at}::timestamptz, ${newId()}::uuid, 'message.unknown', ${messageId}::uuid, ${count}::bigint
    from apps a cross join event_webhooks w
    where a.id = ${appId} and w.app_id = ${appId} and w.disabled_at is null and 'message.unknown' = any(w.kinds)`)

/**
 * The kinds that any event webhook of the app wants now. Reads a few rows by their key, so it is cheap enough for each
 * batch.
 */
export async function findWantedEvents(db: Db, appId: AppId): Promise<Set<EventKind>> {
  const found = await db.query<{ kinds: EventKind[] }>(sql`
    select kinds
    from event_webhooks
    where app_id = ${appId} and disabled_at is null`)
  return new Set(found.flatMap(({ kinds }) => kinds))
}
