// All SQL on deliveries that wait, are sent, and are settled. None of it is prepared: a plan kept from when a month was empty
// would read all of it when it holds millions.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { CountedUnder, DeliveryKey, DeliveryState, Platform } from '../delivery.ts'
import type { Message, MessageId } from '../message.ts'

export const UNPREPARED = { prepare: false } as const

/** One that is due, with its address as it is now; without `ownerId` the subscription is gone. */
export type DueDelivery = DeliveryKey &
  CountedUnder & {
    userId: UserId
    platform: Platform
    dueAt: Date
    expiresAt: Date
    attempts: number
    reason: string | null
    ownerId: UserId | null
    token: string | null
    enabled: boolean | null
    notificationTypes: number | null
    webAuth: string | null
    webP256: string | null
    language: string | null
    timeZone: string | null
  }

/** In the order in which they are due. Those of canceled messages are left to who closes them. */
export const findDue = (db: Db, appId: AppId, line: string, now: Date, limit: number) =>
  db.query<DueDelivery>(
    sql`
    select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.due_at, d.expires_at,
      d.attempts, d.reason, d.sending_domain, d.inbox_provider, s.user_id as owner_id, s.token, s.enabled, s.notification_types, s.web_auth, s.web_p256,
      coalesce(s.language, u.language) as language, u.timezone_id as time_zone
    from (
      select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.due_at, d.expires_at,
        d.attempts, d.reason, d.sending_domain, d.inbox_provider
      from deliveries d
      where d.app_id = ${appId} and d.line = ${line} and d.state = 'pending' and d.due_at <= ${now}
        and (select m.state from messages m where m.app_id = ${appId} and m.id = d.message_id) <> 'canceled'
      order by d.due_at
      limit ${limit}
    ) d
    left join lateral (
      select s.user_id, s.token, s.enabled, s.notification_types, s.web_auth, s.web_p256, s.language
      from subscriptions s where s.app_id = ${appId} and s.id = d.subscription_id offset 0) s on true
    left join lateral (
      select u.language, u.timezone_id from users u where u.app_id = ${appId} and u.id = s.user_id offset 0) u on true
    order by d.due_at`,
    UNPREPARED,
  )

/** When the next delivery of each of these lines is due; lines in which nothing waits are left out. */
export const findNextDue = (db: Db, appId: AppId, lines: readonly string[]) =>
  db.query<{ line: string; dueAt: Date }>(
    sql`
    select n.line, n.due_at
    from (
      select l.line, (
        select d.due_at from deliveries d
        where d.app_id = ${appId} and d.line = l.line and d.state = 'pending'
        order by d.due_at limit 1) as due_at
      from unnest(${lines}::text[]) l(line)) n
    where n.due_at is not null`,
    UNPREPARED,
  )

/** What a delivery is to become. What it is known by and counted under stays where it is null here. */
export type DeliveryChange = DeliveryKey &
  CountedUnder & {
    platform: Platform
    state: DeliveryState
    reason: string | null
    dueAt: Date
    attempts: number
    fence: number | null
    providerRef: string | null
    deliveredAt: Date | null
    bouncedAt: Date | null
    settledAt: Date | null
  }

/** What a change may find: a state, and whose. */
export type Expected = { state: DeliveryState; fence?: number }

/** Named, so that no other months are looked at. */
const monthsOf = (list: readonly DeliveryKey[]) =>
  [...new Set(list.map(({ expandAt }) => expandAt.getTime()))].map((ms) => new Date(ms))

/**
 * Answers the changes that were made: those whose delivery was as expected. The state is compared in a form that no index holds:
 * there are indexes by state, and with figures that are a minute old the planner would go through all that is pending.
 */
export async function changeDeliveries(
  db: Db,
  appId: AppId,
  changes: readonly DeliveryChange[],
  { state, fence }: Expected,
): Promise<DeliveryChange[]> {
  if (changes.length === 0) return []
  const given = changes.map((change, n) => ({ ...change, n }))
  const changed = await db.query<{ n: number }>(
    sql`
    update deliveries d
    set state = r.state, reason = r.reason, due_at = r."dueAt", attempts = r.attempts, fence = r.fence,
      provider_ref = coalesce(r."providerRef", d.provider_ref), settled_at = r."settledAt",
      sending_domain = coalesce(r."sendingDomain", d.sending_domain),
      inbox_provider = coalesce(r."inboxProvider", d.inbox_provider),
      delivered_at = coalesce(d.delivered_at, r."deliveredAt"), bounced_at = coalesce(d.bounced_at, r."bouncedAt")
    from jsonb_to_recordset(${rows(given)}::jsonb)
      as r(n integer, "expandAt" timestamptz, "messageId" uuid, "subscriptionId" uuid, "runId" uuid, state text, reason text,
        "dueAt" timestamptz, attempts smallint, fence bigint, "providerRef" text, "settledAt" timestamptz, "sendingDomain" text,
        "inboxProvider" text, "deliveredAt" timestamptz, "bouncedAt" timestamptz)
    where d.app_id = ${appId} and d.expand_at = any(${monthsOf(changes)}::timestamptz[]) and d.expand_at = r."expandAt"
      and d.message_id = r."messageId" and d.subscription_id = r."subscriptionId" and d.run_id = r."runId"
      and d.state || '' = ${state} and (${fence ?? null}::bigint is null or d.fence = ${fence ?? null}::bigint)
    returning r.n`,
    UNPREPARED,
  )
  return changed.map(({ n }) => changes[n] as DeliveryChange)
}

export type Counted = { messageId: MessageId; platform: Platform; state: DeliveryState; reason: string | null }

/** The messages of which a worker that no longer has this line left something in the middle. */
export async function findInterrupted(db: Db, appId: AppId, line: string, fence: number): Promise<MessageId[]> {
  const found = await db.query<{ messageId: MessageId }>(
    sql`
    select distinct d.message_id from deliveries d
    where d.app_id = ${appId} and d.line = ${line} and d.state = 'sending' and d.fence <> ${fence}`,
    UNPREPARED,
  )
  return found.map(({ messageId }) => messageId)
}

/** Nobody knows whether they were sent. Only those of messages that ask for it are sent again. */
export const takeOverSending = (
  db: Db,
  appId: AppId,
  { line, fence, reason, again }: { line: string; fence: number; reason: string; again: readonly MessageId[] },
  now: Date,
) =>
  db.query<Counted>(
    sql`
    update deliveries d
    set state = case when d.message_id = any(${again}::uuid[]) then 'pending' else 'unknown' end,
      reason = ${reason},
      due_at = case when d.message_id = any(${again}::uuid[]) then ${now}::timestamptz else d.due_at end,
      settled_at = case when d.message_id = any(${again}::uuid[]) then null else ${now}::timestamptz end
    where d.app_id = ${appId} and d.line = ${line} and d.state = 'sending' and d.fence <> ${fence}
    returning d.message_id, d.platform, d.state, d.reason`,
    UNPREPARED,
  )

export type ExpiredDelivery = Counted & CountedUnder & Pick<DueDelivery, 'attempts'>

/** Of a line whose sending is held: what has become too late meanwhile. */
export const expireDue = (db: Db, appId: AppId, line: string, now: Date, limit: number) =>
  db.query<ExpiredDelivery>(
    sql`
    update deliveries
    set state = 'expired', settled_at = ${now}
    where app_id = ${appId} and (tableoid, ctid) in (
      select tableoid, ctid from deliveries
      where app_id = ${appId} and line = ${line} and state = 'pending' and due_at <= ${now} and expires_at <= ${now}
      limit ${limit}
      for update skip locked)
    returning message_id, platform, state, reason, attempts, sending_domain, inbox_provider`,
    UNPREPARED,
  )

/** Pending deliveries of a message that was canceled, some at a time. */
export const closePending = (db: Db, appId: AppId, id: MessageId, expandAt: Date, now: Date, limit: number) =>
  db.query<Counted>(
    sql`
    update deliveries
    set state = 'canceled', reason = null, settled_at = ${now}
    where app_id = ${appId} and expand_at = ${expandAt} and (tableoid, ctid) in (
      select tableoid, ctid from deliveries
      where app_id = ${appId} and expand_at = ${expandAt} and message_id = ${id} and state = 'pending'
      limit ${limit}
      for update skip locked)
    returning message_id, platform, state, reason`,
    UNPREPARED,
  )

/** One that somebody else is just deciding about is left out by closing. */
export async function hasPending(db: Db, appId: AppId, id: MessageId, expandAt: Date): Promise<boolean> {
  const found = await db.query(
    sql`
    select 1 from deliveries d
    where d.app_id = ${appId} and d.expand_at = ${expandAt} and d.message_id = ${id} and d.state = 'pending'
    limit 1`,
    UNPREPARED,
  )
  return found.length > 0
}

export type SentMessage = Pick<
  Message,
  'id' | 'channel' | 'lane' | 'name' | 'templateId' | 'content' | 'emailHtml' | 'options'
>

export const findSentMessages = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query<SentMessage>(sql`
    select m.id, m.channel, m.lane, m.name, m.template_id, m.content, m.email_html, m.options
    from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[])`)
