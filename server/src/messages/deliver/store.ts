// All SQL on pending and settled deliveries. Statements that every batch runs are prepared: planning them for all
// months took as long as running them. A plan for a small month does not survive its growth, because the month is
// analyzed then (expand/growth.ts, refreshStatistics). Rare statements are planned for their values.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { emptySql, type Sql, sql } from '../../storage/sql.ts'
import type { DeliveryKey, DeliveryState, EmailDimensions, Platform } from '../delivery.ts'
import type { Message, MessageId } from '../message.ts'
import { isNextOfRun } from './run-order-store.ts'

export const UNPREPARED = { prepare: false } as const

/** A due delivery with its current address. Without `ownerId`, the subscription was deleted. */
export type DueDelivery = DeliveryKey &
  EmailDimensions & {
    userId: UserId
    platform: Platform
    dueAt: Date
    expiresAt: Date
    attempts: number
    reason: string | null
    step: number
    ownerId: UserId | null
    token: string | null
    enabled: boolean | null
    notificationTypes: number | null
    webAuth: string | null
    webP256: string | null
    language: string | null
    timeZone: string | null
  }

/**
 * Deliveries in the order in which they are due. Those of canceled messages are left to the job that closes them; those
 * that follow another one of their run wait until it is settled.
 */
export async function findDue(db: Db, appId: AppId, shard: string, now: Date, limit: number): Promise<DueDelivery[]> {
  const due = await findDueWhere(db, appId, shard, now, limit, emptySql)
  // Deliveries with an order are rare, and the condition makes the statement more expensive.
  return due.some(({ step }) => step > 1)
    ? findDueWhere(db, appId, shard, now, limit, sql`and ${isNextOfRun(appId)}`)
    : due
}

const findDueWhere = (db: Db, appId: AppId, shard: string, now: Date, limit: number, condition: Sql) =>
  db.query<DueDelivery>(
    sql`
    select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.due_at, d.expires_at,
      d.attempts, d.reason, d.step, d.sending_domain, d.inbox_provider, s.user_id as owner_id, s.token, s.enabled, s.notification_types, s.web_auth, s.web_p256,
      coalesce(s.language, u.language) as language, u.timezone_id as time_zone
    from (
      select d.expand_at, d.message_id, d.subscription_id, d.run_id, d.user_id, d.platform, d.due_at, d.expires_at,
        d.attempts, d.reason, d.step, d.sending_domain, d.inbox_provider
      from deliveries d
      where d.app_id = ${appId} and d.line = ${shard} and d.state = 'pending' and d.due_at <= ${now}
        and (select m.state from messages m where m.app_id = ${appId} and m.id = d.message_id) <> 'canceled'
        ${condition}
      order by d.due_at
      limit ${limit}
    ) d
    left join lateral (
      select s.user_id, s.token, s.enabled, s.notification_types, s.web_auth, s.web_p256, s.language
      from subscriptions s where s.app_id = ${appId} and s.id = d.subscription_id offset 0) s on true
    left join lateral (
      select u.language, u.timezone_id from users u where u.app_id = ${appId} and u.id = s.user_id offset 0) u on true
    order by d.due_at`,
  )

/** When the next delivery of each shard is due. Shards without pending deliveries are left out. */
export const findNextDue = (db: Db, appId: AppId, shards: readonly string[]) =>
  db.query<{ shard: string; dueAt: Date }>(
    sql`
    select n.line as shard, n.due_at
    from (
      select l.line, (
        select d.due_at from deliveries d
        where d.app_id = ${appId} and d.line = l.line and d.state = 'pending'
        order by d.due_at limit 1) as due_at
      from unnest(${shards}::text[]) l(line)) n
    where n.due_at is not null`,
  )

/** What a delivery becomes. References, dimensions and arrival times that are null here keep their stored values. */
export type DeliveryChange = DeliveryKey &
  EmailDimensions & {
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

/**
 * The state in which a delivery must be for a change to apply, the fence of the attempt, and whether no feedback may
 * have arrived yet.
 */
export type ExpectedState = { state: DeliveryState; fence?: number; isUnheard?: boolean }

/** Naming the months lets the planner skip all others. */
const monthsOf = (list: readonly DeliveryKey[]) =>
  [...new Set(list.map(({ expandAt }) => expandAt.getTime()))].map((ms) => new Date(ms))

/**
 * Deliveries of one batch become nearly the same: each distinct target is passed once, and each delivery names its
 * target.
 */
type ChangeTarget = Omit<DeliveryChange, 'subscriptionId' | 'runId' | 'platform' | 'providerRef'>

function targetsOf(changes: readonly DeliveryChange[]) {
  const numbers = new Map<string, number>()
  const targets: ChangeTarget[] = []
  const which = changes.map((change) => {
    const times = [change.expandAt, change.dueAt, change.settledAt, change.deliveredAt, change.bouncedAt].map((time) =>
      time?.getTime(),
    )
    const { messageId, state, reason, attempts, fence, sendingDomain, inboxProvider } = change
    const key = JSON.stringify([messageId, state, reason, attempts, fence, sendingDomain, inboxProvider, times])
    const known = numbers.get(key)
    if (known !== undefined) return known
    numbers.set(key, targets.push(change))
    return targets.length
  })
  return { targets, which }
}

const orderOf = ({ messageId, subscriptionId, runId }: DeliveryKey) => `${messageId} ${subscriptionId} ${runId}`

/** The order in which all transactions lock deliveries. */
const inOrder = (changes: readonly DeliveryChange[]) =>
  changes
    .map((change) => ({ change, key: orderOf(change) }))
    .sort((a, b) => a.change.expandAt.getTime() - b.change.expandAt.getTime() || (a.key < b.key ? -1 : 1))
    .map(({ change }) => change)

/**
 * Returns the changes that were made, which are those whose delivery was in the expected state. The state is compared
 * as an expression that has no index: with statistics that are a minute old, the planner would read all pending
 * deliveries by the index on the state.
 */
export async function changeDeliveries(
  db: Db,
  appId: AppId,
  changes: readonly DeliveryChange[],
  { state, fence, isUnheard = false }: ExpectedState,
): Promise<DeliveryChange[]> {
  if (changes.length === 0) return []
  const ordered = inOrder(changes)
  const { targets, which } = targetsOf(ordered)
  const each = <Value>(of: (target: ChangeTarget) => Value) => targets.map(of)
  const changed = await db.query<{ n: number }>(
    sql`
    update deliveries d
    set state = (${each((it) => it.state)}::text[])[r.target], reason = (${each((it) => it.reason)}::text[])[r.target],
      due_at = (${each((it) => it.dueAt)}::timestamptz[])[r.target],
      attempts = (${each((it) => it.attempts)}::smallint[])[r.target], fence = (${each((it) => it.fence)}::bigint[])[r.target],
      settled_at = (${each((it) => it.settledAt)}::timestamptz[])[r.target],
      provider_ref = coalesce(r.provider_ref, d.provider_ref),
      sending_domain = coalesce((${each((it) => it.sendingDomain)}::text[])[r.target], d.sending_domain),
      inbox_provider = coalesce((${each((it) => it.inboxProvider)}::text[])[r.target], d.inbox_provider),
      delivered_at = coalesce(d.delivered_at, (${each((it) => it.deliveredAt)}::timestamptz[])[r.target]),
      bounced_at = coalesce(d.bounced_at, (${each((it) => it.bouncedAt)}::timestamptz[])[r.target])
    from unnest(${ordered.map((it) => it.subscriptionId)}::uuid[], ${ordered.map((it) => it.runId)}::uuid[],
      ${ordered.map((it) => it.providerRef)}::text[], ${which}::integer[]) with ordinality
      as r(subscription_id, run_id, provider_ref, target, n)
    where d.app_id = ${appId} and d.expand_at = any(${monthsOf(changes)}::timestamptz[])
      and d.expand_at = (${each((it) => it.expandAt)}::timestamptz[])[r.target]
      and d.message_id = (${each((it) => it.messageId)}::uuid[])[r.target]
      and d.subscription_id = r.subscription_id and d.run_id = r.run_id
      and d.state || '' = ${state} and (${fence ?? null}::bigint is null or d.fence = ${fence ?? null}::bigint)
      and (not ${isUnheard}::boolean or (d.delivered_at is null and d.bounced_at is null))
    returning r.n`,
  )
  return changed.map(({ n }) => ordered[n - 1] as DeliveryChange)
}

export type CountedDelivery = { messageId: MessageId; platform: Platform; state: DeliveryState; reason: string | null }

export type ExpiredDelivery = CountedDelivery & EmailDimensions & Pick<DueDelivery, 'attempts' | 'subscriptionId'>

/** Ends deliveries that expired while the sending of their shard was held. */
export const expireDue = (db: Db, appId: AppId, shard: string, now: Date, limit: number) =>
  db.query<ExpiredDelivery>(
    sql`
    update deliveries
    set state = 'expired', settled_at = ${now}
    where app_id = ${appId} and (tableoid, ctid) in (
      select tableoid, ctid from deliveries
      where app_id = ${appId} and line = ${shard} and state = 'pending' and due_at <= ${now} and expires_at <= ${now}
      limit ${limit}
      for update skip locked)
    returning message_id, subscription_id, platform, state, reason, attempts, sending_domain, inbox_provider`,
    UNPREPARED,
  )

export type SentMessage = Pick<
  Message,
  'id' | 'channel' | 'lane' | 'name' | 'templateId' | 'content' | 'emailHtml' | 'options'
>

export const findSentMessages = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query<SentMessage>(sql`
    select m.id, m.channel, m.lane, m.name, m.template_id, m.content,
      coalesce(to_jsonb(m.email_html), m.email_html_by_language) as email_html, m.options
    from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[])`)
