// The SQL with which reports read deliveries.

import type { AppId, SubscriptionId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { DeliveryView, ExpandedMessage, ReportCursor } from './reported-delivery.ts'

/** Distinguishes deliveries that are being sent now from those that wait. */
const columns = sql`d.subscription_id, d.run_id, d.user_id, d.platform,
  case when d.state = 'pending' and u.run_id is not null then 'sending' else d.state end as state, d.reason, d.attempts, d.provider_ref, d.due_at,
  d.expires_at, d.settled_at, d.received_at, d.clicked_at, d.inbox_provider, d.delivered_at, d.opened_at, d.bounced_at,
  d.complained_at, d.unsubscribed_at`

const underWay = (appId: AppId, { id }: ExpandedMessage) => sql`
  select r.subscription_id, r.run_id
  from slices s cross join unnest(s.message_ids, s.subscription_ids, s.run_ids) as r(message_id, subscription_id, run_id)
  where s.app_id = ${appId} and r.message_id = ${id}`

export const findDeliveriesTo = (
  db: Db,
  appId: AppId,
  message: ExpandedMessage,
  subscriptionIds: readonly SubscriptionId[],
) =>
  db.query<DeliveryView>(sql`
    select ${columns}
    from deliveries d
    left join (${underWay(appId, message)}) u on u.subscription_id = d.subscription_id and u.run_id = d.run_id
    where d.app_id = ${appId} and d.expand_at = ${message.expandAt} and d.message_id = ${message.id}
      and d.subscription_id = any(${subscriptionIds}::uuid[])
    order by d.subscription_id, d.run_id`)

/** The next deliveries in the order of their key, in any state. */
export const findDeliveriesAfter = (
  db: Db,
  appId: AppId,
  message: ExpandedMessage,
  after: ReportCursor | undefined,
  limit: number,
) =>
  db.query<DeliveryView>(sql`
    select ${columns}
    from deliveries d
    left join (${underWay(appId, message)}) u on u.subscription_id = d.subscription_id and u.run_id = d.run_id
    where d.app_id = ${appId} and d.expand_at = ${message.expandAt} and d.message_id = ${message.id}
      and (d.subscription_id, d.run_id) > (${after?.subscriptionId ?? FIRST_ID}::uuid, ${after?.runId ?? FIRST_ID}::uuid)
    order by d.subscription_id, d.run_id
    limit ${limit}`)

/** Sorts before every existing id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
