// The rows of exports, read by ranges of a key, so that each read costs the same. Plans are made for the current size
// of the tables: a plan cached while they were small would read all of a large one for every row.

import type { AppId, SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'

const UNPREPARED = { prepare: false } as const

/** Sorts before every existing id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

export type DeliveryRowCursor = { subscriptionId: SubscriptionId; runId: string }

export type DeliveryRow = DeliveryRowCursor & {
  userId: UserId
  externalId: string | null
  platform: string
  state: string
  reason: string | null
  attempts: number
  providerRef: string | null
  dueAt: Date
  settledAt: Date | null
  receivedAt: Date | null
  clickedAt: Date | null
  /** This and the following fields exist for email only. */
  inboxProvider: string | null
  deliveredAt: Date | null
  openedAt: Date | null
  bouncedAt: Date | null
  complainedAt: Date | null
  unsubscribedAt: Date | null
}

export const findDeliveryRows = (
  db: Db,
  appId: AppId,
  message: { id: string; expandAt: Date },
  after: DeliveryRowCursor | undefined,
  limit: number,
) =>
  db.query<DeliveryRow>(
    sql`
    select d.subscription_id, d.run_id, d.user_id, d.platform, d.state, d.reason, d.attempts, d.provider_ref, d.due_at,
      d.settled_at, d.received_at, d.clicked_at, d.inbox_provider, d.delivered_at, d.opened_at, d.bounced_at, d.complained_at,
      d.unsubscribed_at,
      (select l.value from aliases l
       where l.app_id = ${appId} and l.user_id = d.user_id and l.label = 'external_id') as external_id
    from deliveries d
    where d.app_id = ${appId} and d.expand_at = ${message.expandAt} and d.message_id = ${message.id}
      and (d.subscription_id, d.run_id) > (${after?.subscriptionId ?? FIRST_ID}::uuid, ${after?.runId ?? FIRST_ID}::uuid)
    order by d.subscription_id, d.run_id
    limit ${limit}`,
    UNPREPARED,
  )

export type SubscriptionRow = {
  id: SubscriptionId
  type: string
  token: string | null
  notificationTypes: number | null
  enabled: boolean
  sessionCount: number
  sessionTime: number
  language: string | null
  timezoneSeconds: number | null
  appVersion: string | null
  deviceOs: string | null
  deviceModel: string | null
  adId: string | null
  tags: Record<string, string>
  lastActive: Date
  amountSpent: string
  createdAt: Date
  badgeCount: number | null
  lat: number | null
  long: number | null
  country: string | null
  rooted: boolean | null
  ip: string | null
  externalId: string | null
  webAuth: string | null
  webP256: string | null
}

/**
 * Returns those subscriptions that were active at or after `since`, ordered by id. `offset 0` makes PostgreSQL look up
 * each one: with outdated statistics, joins would read all of the app's users once for each.
 */
export const findSubscriptionRows = (db: Db, appId: AppId, ids: readonly SubscriptionId[], since: Date | null) =>
  db.query<SubscriptionRow>(
    sql`
    select s.id, s.type, s.token, s.notification_types, s.enabled,
      coalesce(t.session_count, 0) as session_count, coalesce(t.session_time, 0) as session_time,
      coalesce(s.language, u.language) as language, s.timezone_seconds, s.app_version, s.device_os, s.device_model, s.ad_id,
      u.tags, coalesce(t.last_active, s.created_at) as last_active, u.amount_spent::text as amount_spent, s.created_at,
      s.badge_count, coalesce(s.lat, u.lat) as lat, coalesce(s.long, u.long) as long,
      coalesce(s.country, u.country) as country, s.rooted, u.ip, s.web_auth, s.web_p256,
      (select l.value from aliases l
       where l.app_id = ${appId} and l.user_id = s.user_id and l.label = 'external_id') as external_id
    from unnest(${ids}::uuid[]) as given(id)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.notification_types, s.enabled, s.language, s.timezone_seconds, s.app_version,
        s.device_os, s.device_model, s.ad_id, s.created_at, s.badge_count, s.lat, s.long, s.country, s.rooted, s.web_auth,
        s.web_p256
      from subscriptions s where s.app_id = ${appId} and s.id = given.id offset 0) s
    cross join lateral (
      select u.language, u.tags, u.amount_spent, u.lat, u.long, u.country, u.ip
      from users u where u.app_id = ${appId} and u.id = s.user_id offset 0) u
    left join lateral (
      select t.last_active, t.session_count, t.session_time
      from subscription_activity t where t.app_id = ${appId} and t.subscription_id = s.id offset 0) t on true
    where coalesce(t.last_active, s.created_at) >= coalesce(${since}::timestamptz, '-infinity')
    order by s.id`,
    UNPREPARED,
  )
