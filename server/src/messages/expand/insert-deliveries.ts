// The statement that writes deliveries: it joins candidates with what applies to them and decides about each. It is
// composed at run time, because audience and times take different forms; insert-deliveries.test.ts checks every form
// against the rules for all statements.

import { randomInt } from 'node:crypto'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { emptySql, rows, type Sql, sql } from '../../storage/sql.ts'
import { subscribedSql } from '../../users/subscriptions/reachable.ts'
import { BATCH_SIZE } from '../deliver/batch.ts'
import { UNPREPARED } from '../deliver/store.ts'
import { type DeliveryState, NO_SHARD, type Platform, type Provider, SHARD_COUNT } from '../delivery.ts'
import { type Message, type MessageId, NO_RUN } from '../message.ts'
import type { Candidates } from './candidates.ts'

/** What applies to all deliveries of a message. */
export type MessagePlan = {
  id: MessageId
  lane: Message['lane']
  expandAt: Date
  dueAt: Date
  /** How long a delivery lives after it is due. */
  lifetimeSeconds: number
  /** Unsubscribed recipients get the message too. */
  includesUnsubscribed: boolean
}

/** What applies to all deliveries to one type of subscription: the provider, or the reason why they are skipped. */
export type ProviderChoice = { messageId: MessageId; type: Platform; provider: Provider | null; reason: string | null }

/**
 * How the due time of each delivery is decided: by the recipient's time zone, their last activity, or their position.
 */
export type DueTiming =
  | { kind: 'at once' }
  | {
      kind: 'zones'
      fallback: Date
      byZone: { zone: string; dueAt: Date }[]
      byOffset: { seconds: number; dueAt: Date }[]
    }
  | { kind: 'last active' }
  | { kind: 'throttled'; perMinute: number }
  /**
   * The first `quota` recipients are spread over the first stage, and so on; those after the last stage are skipped.
   */
  | { kind: 'staged'; stages: readonly { start: Date; end: Date; quota: number }[]; after: number }

/** Deliveries that were written, summed up. */
export type ExpandedGroup = {
  messageId: MessageId
  platform: Platform
  state: DeliveryState
  reason: string | null
  shard: string
  count: number
  dueAt: Date
}

const DAY_SECONDS = 86_400
/** The reason of recipients after the last stage of a warm-up. */
export const BEYOND_WARM_UP = 'beyond_warm_up'

/** The position of a candidate among those who are not skipped, from 0. */
const positionOf = (after: number): Sql =>
  sql`(${after}::bigint + row_number() over (partition by c.reason is null order by c.id) - 1)`

/**
 * Expressions on a candidate `c`; `joins` adds the tables they need. `reason` is set if the due time can be a reason to
 * skip.
 */
type DueTimeSql = { dueAt: Sql; joins: Sql; reason?: Sql }

function dueTimeOf(appId: AppId, timing: DueTiming): DueTimeSql {
  switch (timing.kind) {
    case 'at once':
      return { dueAt: sql`c."dueAt"`, joins: emptySql }
    case 'zones':
      return {
        dueAt: sql`coalesce(zr."dueAt", zo."dueAt", ${timing.fallback}::timestamptz)`,
        joins: sql`
          left join lateral (
            select u.timezone_id from users u where u.app_id = ${appId} and u.id = c.user_id offset 0) zu on true
          left join jsonb_to_recordset(${rows(timing.byZone)}::jsonb) as zr(zone text, "dueAt" timestamptz)
            on zr.zone = zu.timezone_id
          left join jsonb_to_recordset(${rows(timing.byOffset)}::jsonb) as zo(seconds integer, "dueAt" timestamptz)
            on zu.timezone_id is null and zo.seconds = c.timezone_seconds`,
      }
    case 'last active':
      return {
        // The same time of day within the next 24 hours, to the minute, so that shards do not run every second.
        dueAt: sql`c."dueAt" + interval '1 minute' * floor(mod(mod(
          extract(epoch from coalesce(la.last_active, c.created_at)) - extract(epoch from c."dueAt"), ${DAY_SECONDS}::numeric)
          + ${DAY_SECONDS}::numeric, ${DAY_SECONDS}::numeric) / 60)`,
        joins: sql`
          left join lateral (
            select t.last_active from subscription_activity t
            where t.app_id = ${appId} and t.subscription_id = c.id offset 0) la on true`,
      }
    case 'throttled':
      return {
        dueAt: sql`c."dueAt" + interval '1 second' * floor(
          ${positionOf(0)} * 60.0 / ${timing.perMinute}::integer)`,
        joins: emptySql,
      }
    case 'staged':
      return stagedTimeOf(timing)
  }
}

function stagedTimeOf({ stages, after }: Extract<DueTiming, { kind: 'staged' }>): DueTimeSql {
  const position = positionOf(after)
  // The positions at which each stage begins, and at which the last one ends.
  const begins = [0]
  for (const { quota } of stages) begins.push((begins.at(-1) as number) + quota)
  const secondsEach = stages.map(({ start, end, quota }) => (end.getTime() - start.getTime()) / 1_000 / quota)
  const stage = sql`width_bucket(${position}, ${begins}::bigint[])`
  return {
    dueAt: sql`coalesce(
      (${stages.map(({ start }) => start)}::timestamptz[])[${stage}] + interval '1 second' * floor(
        (${position} - (${begins}::bigint[])[${stage}]) * (${secondsEach}::double precision[])[${stage}]),
      c."dueAt")`,
    joins: emptySql,
    reason: sql`case when c.reason is null and ${position} >= ${begins.at(-1)}::bigint then ${BEYOND_WARM_UP} else c.reason end`,
  }
}

/** Over how many shards deliveries are spread, and which one is the first. */
export type ShardSpread = { first: number; count: number }

export const ALL_SHARDS: ShardSpread = { first: 0, count: SHARD_COUNT }

/**
 * Running a shard costs nearly the same for one delivery as for a batch. Few recipients therefore go into one shard,
 * which is chosen at random, and more recipients into as many shards as they fill.
 */
export const shardsFor = (candidates: number): ShardSpread => ({
  first: randomInt(SHARD_COUNT),
  count: Math.min(SHARD_COUNT, Math.max(1, Math.ceil(candidates / BATCH_SIZE))),
})

export type Expansion = {
  plans: readonly MessagePlan[]
  providers: readonly ProviderChoice[]
  candidates: Candidates
  timing: DueTiming
  shards: ShardSpread
  /** If true, everybody else is skipped. */
  onlyTestUsers: boolean
}

/**
 * One row for each candidate, with the decision about it. Order of the decisions: whether the recipient is subscribed,
 * whether it is a test for others, whether a provider can deliver it.
 */
export function expandStatement(
  appId: AppId,
  { plans, providers, candidates, timing, shards, onlyTestUsers }: Expansion,
  now: Date,
) {
  const { dueAt, joins, reason = sql`c.reason` } = dueTimeOf(appId, timing)
  const testers = onlyTestUsers
    ? sql`left join lateral (
        select u.test_user_name from users u where u.app_id = ${appId} and u.id = c.user_id offset 0) tu on true`
    : emptySql
  const isOfMessage = candidates.areOfOneMessage ? sql`true` : sql`c.message_id = m.id`
  const runId = candidates.haveRuns ? sql`c.run_id` : sql`${NO_RUN}::uuid`
  const step = candidates.haveRuns ? sql`c.step` : sql`0`
  // A run that is added again gets no second delivery.
  const butOnce = candidates.haveRuns
    ? sql`on conflict (app_id, expand_at, message_id, subscription_id, run_id) do nothing`
    : emptySql
  const isNoTester = onlyTestUsers ? sql`tu.test_user_name is null` : sql`false`
  return sql`
    with inserted as (
      insert into deliveries (app_id, expand_at, message_id, subscription_id, run_id, user_id, platform, line, state, reason,
        due_at, expires_at, settled_at, step)
      select a.id, e."expandAt", e.message_id, e.id, e.run_id, e.user_id, e.type,
        case when e.reason is null
          then e.lane || '/' || e.provider || '/'
            || (${shards.first}::integer + get_byte(uuid_send(e.id), 15) % ${shards.count}::integer) % ${SHARD_COUNT}::integer
          else ${NO_SHARD} end,
        case when e.reason is null then 'pending' else 'skipped' end,
        e.reason, e.due_at, greatest(e.due_at, ${now}::timestamptz) + interval '1 second' * e."lifetimeSeconds",
        case when e.reason is not null then ${now}::timestamptz end, e.step
      from apps a cross join (
        select c.message_id, c.lane, c."expandAt", c."lifetimeSeconds", c.id, c.run_id, c.step, c.user_id, c.type, c.provider,
          ${reason} as reason, ${dueAt} as due_at
        from (
          select m.id as message_id, m.lane, m."expandAt", m."dueAt", m."lifetimeSeconds", c.id, ${runId} as run_id, ${step} as step,
            c.user_id, c.type, c.timezone_seconds, c.created_at, w.provider,
            case
              when c.token is null then 'unsubscribed'
              when not (${subscribedSql(sql`c`)} or m."includesUnsubscribed") then 'unsubscribed'
              when ${isNoTester} then 'no_test_user'
              else w.reason
            end as reason
          from jsonb_to_recordset(${rows(plans)}::jsonb)
            as m(id uuid, lane text, "expandAt" timestamptz, "dueAt" timestamptz, "lifetimeSeconds" integer,
              "includesUnsubscribed" boolean)
          join (${candidates.rows}) c on ${isOfMessage}
          join jsonb_to_recordset(${rows(providers)}::jsonb) as w("messageId" uuid, type text, provider text, reason text)
            on w."messageId" = m.id and w.type = c.type
          ${testers}
        ) c ${joins}
      ) e
      where a.id = ${appId}
      ${butOnce}
      returning message_id, platform, state, reason, line, due_at
    )
    select i.message_id, i.platform, i.state, i.reason, i.line as shard, count(*) as count, min(i.due_at) as due_at
    from inserted i
    group by i.message_id, i.platform, i.state, i.reason, i.line`
}

/** Returns the written deliveries, summed up. */
export const insertDeliveries = (db: Db, appId: AppId, expansion: Expansion, now: Date) =>
  db.query<ExpandedGroup>(expandStatement(appId, expansion, now), { prepare: expansion.candidates.areNamed ?? false })

/** The time zones of candidates, for messages that are sent at each recipient's own hour. */
export const zonesStatement = (appId: AppId, candidates: Candidates): Sql => sql`
  select distinct u.timezone_id as zone, case when u.timezone_id is null then c.timezone_seconds end as seconds
  from (${candidates.rows}) c
  left join lateral (
    select u.timezone_id from users u where u.app_id = ${appId} and u.id = c.user_id offset 0) u on true`

export const findZones = (db: Db, appId: AppId, candidates: Candidates) =>
  db.query<{ zone: string | null; seconds: number | null }>(zonesStatement(appId, candidates), UNPREPARED)
