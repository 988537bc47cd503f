// What reports read of deliveries.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { Delivery, Expanded, Place } from './report.ts'

const columns = sql`d.subscription_id, d.run_id, d.user_id, d.platform, d.state, d.reason, d.attempts, d.provider_ref, d.due_at,
  d.expires_at, d.settled_at, d.received_at, d.clicked_at, d.inbox_provider, d.delivered_at, d.opened_at, d.bounced_at,
  d.complained_at, d.unsubscribed_at`

export const findDeliveriesTo = (db: Db, appId: AppId, message: Expanded, subscriptionIds: readonly SubscriptionId[]) =>
  db.query<Delivery>(sql`
    select ${columns}
    from deliveries d
    where d.app_id = ${appId} and d.expand_at = ${message.expandAt} and d.message_id = ${message.id}
      and d.subscription_id = any(${subscriptionIds}::uuid[])
    order by d.subscription_id, d.run_id`)

/** The next ones in the order of their key, whatever their state. */
export const findDeliveriesAfter = (db: Db, appId: AppId, message: Expanded, after: Place | undefined, limit: number) =>
  db.query<Delivery>(sql`
    select ${columns}
    from deliveries d
    where d.app_id = ${appId} and d.expand_at = ${message.expandAt} and d.message_id = ${message.id}
      and (d.subscription_id, d.run_id) > (${after?.subscriptionId ?? FIRST_ID}::uuid, ${after?.runId ?? FIRST_ID}::uuid)
    order by d.subscription_id, d.run_id
    limit ${limit}`)

/** Before every id that there is. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
