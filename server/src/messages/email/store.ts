// SQL on deliveries by mail: what is known of them beside their state.

import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { CountedUnder, DeliveryState } from '../delivery.ts'
import { UNPREPARED } from '../engine/delivery-store.ts'
import type { DeliveryKey, KnownDelivery } from '../fact.ts'

export const keyOf = ({ messageId, subscriptionId, runId }: Omit<DeliveryKey, 'expandAt'>) =>
  `${messageId} ${subscriptionId} ${runId}`

export type Arrival = DeliveryKey & { deliveredAt: Date | null; bouncedAt: Date | null }

/** Named, so that no other months are looked at. */
const timesOf = (keys: readonly DeliveryKey[]) =>
  [...new Set(keys.map(({ expandAt }) => expandAt.getTime()))].map((ms) => new Date(ms))

/** Locked in the order of their keys. */
export const lockArrivals = (db: Db, appId: AppId, keys: readonly DeliveryKey[]) =>
  db.query<Arrival>(
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

export type EmailDelivery = KnownDelivery &
  EmailTimes &
  CountedUnder & {
    /** By which it was referred to. */
    id: string
    state: DeliveryState
    reason: string | null
  }

const columns = sql`d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.provider_ref as id, d.state,
  d.reason, d.sending_domain, d.inbox_provider, d.delivered_at, d.bounced_at, d.complained_at, d.opened_at, d.clicked_at,
  d.unsubscribed_at`

/** Of one month, locked in the order of their keys. */
export const lockEmails = (db: Db, appId: AppId, month: Date, ids: readonly string[]) =>
  db.query<EmailDelivery>(
    sql`
    select ${columns}
    from deliveries d
    where d.app_id = ${appId} and d.platform = 'Email' and d.provider_ref = any(${ids}::text[])
      and d.expand_at >= ${month}::timestamptz and d.expand_at < ${monthAfter(month)}::timestamptz
    order by d.expand_at, d.message_id, d.subscription_id, d.run_id
    for update`,
    UNPREPARED,
  )

export async function findEmail(db: Db, appId: AppId, month: Date, id: string): Promise<EmailDelivery | undefined> {
  const [found] = await db.query<EmailDelivery>(
    sql`
    select ${columns}
    from deliveries d
    where d.app_id = ${appId} and d.platform = 'Email' and d.provider_ref = ${id}
      and d.expand_at >= ${month}::timestamptz and d.expand_at < ${monthAfter(month)}::timestamptz`,
    UNPREPARED,
  )
  return found
}

const monthAfter = (month: Date) => new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1))

/** Only `unknown` gives way to another state here: it is known now. */
export const updateEmails = (
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

/** As they are now; one that was deleted has none. */
export async function findAddresses(
  db: Db,
  appId: AppId,
  ids: readonly SubscriptionId[],
): Promise<Map<SubscriptionId, string>> {
  const found = await db.query<{ id: SubscriptionId; token: string }>(sql`
    select s.id, s.token from subscriptions s
    where s.app_id = ${appId} and s.id = any(${ids}::uuid[]) and s.token is not null`)
  return new Map(found.map(({ id, token }) => [id, token]))
}
