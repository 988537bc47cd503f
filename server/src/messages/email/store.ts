// SQL on the fields that only deliveries by email have.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { FeedbackDelivery } from '../counts/fact.ts'
import { inFlightByReference } from '../deliver/batch-store.ts'
import { UNPREPARED } from '../deliver/store.ts'
import { type DeliveryKey, type DeliveryState, type EmailDimensions, shardsOf } from '../delivery.ts'

export const deliveryKey = ({ messageId, subscriptionId, runId }: Omit<DeliveryKey, 'expandAt'>) =>
  `${messageId} ${subscriptionId} ${runId}`

export type EmailArrival = DeliveryKey & { deliveredAt: Date | null; bouncedAt: Date | null }

/** Naming the months lets the planner skip all others. */
const timesOf = (keys: readonly DeliveryKey[]) =>
  [...new Set(keys.map(({ expandAt }) => expandAt.getTime()))].map((ms) => new Date(ms))

/** Locks deliveries in the order of their keys. */
export const lockArrivals = (db: Db, appId: AppId, keys: readonly DeliveryKey[]) =>
  db.query<EmailArrival>(
    sql`
    select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.delivered_at, d.bounced_at
    from deliveries d
    join jsonb_to_recordset(${rows(keys)}::jsonb)
      as r("expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid, "runId" uuid)
      on d.expand_at = r."expandAt" and d.message_id = r."messageId" and d.subscription_id = r."subscriptionId"
        and d.run_id = r."runId"
    where d.app_id = ${appId} and d.expand_at = any(${timesOf(keys)}::timestamptz[])
    order by d.expand_at, d.message_id, d.subscription_id, d.run_id
    for update of d`,
    UNPREPARED,
  )

export type EmailTimes = {
  deliveredAt: Date | null
  bouncedAt: Date | null
  complainedAt: Date | null
  openedAt: Date | null
  clickedAt: Date | null
  unsubscribedAt: Date | null
}

export type EmailDelivery = FeedbackDelivery &
  EmailTimes &
  EmailDimensions & {
    /** The reference by which feedback names the delivery. */
    id: string
    state: DeliveryState
    reason: string | null
  }

/**
 * Finds deliveries of one month by the references in the emails. Deliveries with a recorded outcome have their own;
 * those in flight are in the row of their batch. Both are read in one snapshot, so that none is missed while it moves.
 */
const named = (appId: AppId, month: Date, ids: readonly string[]) => sql`
  with meant as materialized (
    select distinct on (m.expand_at, m.message_id, m.subscription_id, m.run_id) m.*
    from (
      select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.provider_ref, d.sending_domain, d.inbox_provider
      from deliveries d
      where d.app_id = ${appId} and d.platform = 'Email' and d.provider_ref = any(${ids}::text[])
        and d.expand_at >= ${month}::timestamptz and d.expand_at < ${monthAfter(month)}::timestamptz
      union all
      ${inFlightByReference(appId, EMAIL_LINES, ids)}
    ) m
  )
  select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, m.provider_ref as id, d.state, d.reason,
    coalesce(d.sending_domain, m.sending_domain) as sending_domain, coalesce(d.inbox_provider, m.inbox_provider) as inbox_provider,
    d.delivered_at, d.bounced_at, d.complained_at, d.opened_at, d.clicked_at, d.unsubscribed_at
  from meant m
  join deliveries d on d.expand_at = m.expand_at and d.message_id = m.message_id and d.subscription_id = m.subscription_id
    and d.run_id = m.run_id
  where d.app_id = ${appId} and d.expand_at >= ${month}::timestamptz and d.expand_at < ${monthAfter(month)}::timestamptz`

const EMAIL_LINES = shardsOf('email')

/** Locks deliveries in the order of their keys. */
export const lockEmailDeliveries = (db: Db, appId: AppId, month: Date, ids: readonly string[]) =>
  db.query<EmailDelivery>(
    sql`
    ${named(appId, month, ids)}
    order by d.expand_at, d.message_id, d.subscription_id, d.run_id
    for update of d`,
    UNPREPARED,
  )

export async function findEmailDelivery(
  db: Db,
  { appId, month, id }: { appId: AppId; month: Date; id: string },
): Promise<EmailDelivery | undefined> {
  const [delivery] = await db.query<EmailDelivery>(named(appId, month, [id]), UNPREPARED)
  return delivery
}

const monthAfter = (month: Date) => new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1))

/** The only state that changes here is `unknown`, because feedback shows what the outcome was. */
export const updateEmailDeliveries = (
  db: Db,
  appId: AppId,
  deliveries: readonly (DeliveryKey & EmailTimes & Pick<EmailDelivery, 'state' | 'reason'>)[],
) =>
  db.query(
    sql`
    update deliveries d
    set state = r.state, reason = r.reason, delivered_at = r."deliveredAt", bounced_at = r."bouncedAt", complained_at = r."complainedAt",
      opened_at = r."openedAt", clicked_at = r."clickedAt", unsubscribed_at = r."unsubscribedAt"
    from jsonb_to_recordset(${rows(deliveries)}::jsonb) as r("expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid,
      "runId" uuid, state text, reason text, "deliveredAt" timestamptz, "bouncedAt" timestamptz, "complainedAt" timestamptz, "openedAt" timestamptz,
      "clickedAt" timestamptz, "unsubscribedAt" timestamptz)
    where d.app_id = ${appId} and d.expand_at = any(${timesOf(deliveries)}::timestamptz[]) and d.expand_at = r."expandAt"
      and d.message_id = r."messageId" and d.subscription_id = r."subscriptionId" and d.run_id = r."runId"`,
    UNPREPARED,
  )

/** Returns the current addresses; a deleted subscription has none. */
export async function findEmailAddresses(
  db: Db,
  appId: AppId,
  ids: readonly SubscriptionId[],
): Promise<Map<SubscriptionId, string>> {
  const found = await db.query<{ id: SubscriptionId; token: string }>(sql`
    select s.id, s.token from subscriptions s
    where s.app_id = ${appId} and s.id = any(${ids}::uuid[]) and s.token is not null`)
  return new Map(found.map(({ id, token }) => [id, token]))
}
