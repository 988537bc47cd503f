// The statement that makes deliveries: who is meant, and the decision about each of them, at once. It is made of parts at run time,
// because audience and times take different forms; expand-statement.test.ts holds every form to the rules of all statements.

import { randomInt } from 'node:crypto'
import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { emptySql, rows, type Sql, sql } from '../../storage/sql.ts'
import { subscribedSql } from '../../users/subscriptions/reachable.ts'
import { BATCH_SIZE } from '../deliver/batch.ts'
import { UNPREPARED } from '../deliver/store.ts'
import { type DeliveryState, NO_SHARD, type Platform, type Provider, SHARD_COUNT } from '../delivery.ts'
import { type Message, type MessageId, NO_RUN } from '../message.ts'
import type { RunRecipient } from './add-recipients.ts'

/** What holds for all deliveries of a message. */
export type MessagePlan = {
  id: MessageId
  lane: Message['lane']
  expandAt: Date
  dueAt: Date
  /** From due until it is too late. */
  lifetimeSeconds: number
  /** Also to those who do not want any. */
  includesUnsubscribed: boolean
}

/** What holds for all deliveries to one type of subscription: who brings them, or why nobody does. */
export type ProviderChoice = { messageId: MessageId; type: Platform; provider: Provider | null; reason: string | null }

/** Whom a message names. An alias may lead to several subscriptions, and several names to one. */
export type NamedRecipient = {
  messageId: MessageId
  subscriptionId?: SubscriptionId
  userId?: string
  label?: string
  value?: string
}

/** What decides about the time of each: by its zone, its last activity, or its place in the queue. */
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
  /** The first `quota` spread over the first stage, and so on; who is beyond the last stage is left out. */
  | { kind: 'staged'; stages: readonly { start: Date; end: Date; quota: number }[]; after: number }

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
/** More people than all stages of a warm-up take. */
export const BEYOND_WARM_UP = 'beyond_warm_up'

/** Where somebody stands among all who are sent to, from 0. */
const positionOf = (after: number): Sql =>
  sql`(${after}::bigint + row_number() over (partition by c.reason is null order by c.id) - 1)`

/** Of a candidate `c`, of which it also needs what `joins` brings. `reason`: where the time is why it is left out. */
function dueTimeOf(appId: AppId, timing: DueTiming): { dueAt: Sql; joins: Sql; reason?: Sql } {
  switch (timing.kind) {
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
        // The same time of day within the next 24 hours, to the minute: whoever delivers need not look every second.
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
    case 'staged': {
      const place = positionOf(timing.after)
      // The place at which each stage begins, and the one at which the last has ended.
      const begins = [0]
      for (const { quota } of timing.stages) begins.push((begins.at(-1) as number) + quota)
      const secondsEach = timing.stages.map(
        ({ start, end, quota }) => (end.getTime() - start.getTime()) / 1_000 / quota,
      )
      const stage = sql`width_bucket(${place}, ${begins}::bigint[])`
      return {
        dueAt: sql`coalesce(
          (${timing.stages.map(({ start }) => start)}::timestamptz[])[${stage}] + interval '1 second' * floor(
            (${place} - (${begins}::bigint[])[${stage}]) * (${secondsEach}::double precision[])[${stage}]),
          c."dueAt")`,
        joins: emptySql,
        reason: sql`case when c.reason is null and ${place} >= ${begins.at(-1)}::bigint then ${BEYOND_WARM_UP} else c.reason end`,
      }
    }
    default:
      return { dueAt: sql`c."dueAt"`, joins: emptySql }
  }
}

/** The subscriptions that names lead to, each once for a message. */
const namedCandidates = (appId: AppId, named: readonly NamedRecipient[]): Sql => sql`
  select distinct on (r."messageId", s.id) r."messageId" as message_id, s.id, s.user_id, s.type, s.token, s.enabled,
    s.notification_types, s.timezone_seconds, s.created_at
  from jsonb_to_recordset(${rows(named)}::jsonb)
    as r("messageId" uuid, "subscriptionId" uuid, "userId" uuid, label text, value text)
  cross join lateral (
    select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
    from subscriptions s where s.app_id = ${appId} and s.id = r."subscriptionId"
    union all
    select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
    from subscriptions s where s.app_id = ${appId} and s.user_id = coalesce(r."userId", (
      select l.user_id from aliases l where l.app_id = ${appId} and l.label = r.label and l.value = r.value))
  ) s`

/**
 * Rows of candidates, and which message each is for. Where they `haveRuns`, each row says which one it is in. Those who `areNamed`
 * are looked up one by one, by one plan that is kept: to plan it took a fifth of its time for seventy of them.
 */
type Candidates = { rows: Sql; isOfMessage: Sql; haveRuns?: true; areNamed?: true }

export const candidatesByName = (appId: AppId, names: readonly NamedRecipient[]): Candidates => ({
  rows: namedCandidates(appId, names),
  isOfMessage: sql`c.message_id = m.id`,
  areNamed: true,
})

/**
 * Subscriptions that were found before, all for the one message; those that are gone since are left out. `ids` is a list in
 * PostgreSQL's own notation. Each is looked up by itself (`offset 0`): without statistics the planner goes through the app for each.
 */
export const candidatesById = (appId: AppId, ids: string): Candidates => ({
  rows: sql`
    select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
    from unnest(${ids}::uuid[]) f(id)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.id = f.id offset 0) s`,
  isOfMessage: sql`true`,
})

/** Everything that the users have, once for each of their runs. */
export const candidatesInRuns = (appId: AppId, recipients: readonly RunRecipient[]): Candidates => ({
  rows: sql`
    select r."messageId" as message_id, r."runId" as run_id, r.step, s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds,
      s.created_at
    from jsonb_to_recordset(${rows(recipients)}::jsonb) as r("messageId" uuid, "runId" uuid, "userId" uuid, step integer)
    cross join lateral (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} and s.user_id = r."userId" offset 0) s`,
  isOfMessage: sql`c.message_id = m.id`,
  haveRuns: true,
  areNamed: true,
})

/** Over how many parts of their lines deliveries are spread, and which is the first. */
export type ShardSpread = { first: number; count: number }

export const ALL_SHARDS: ShardSpread = { first: 0, count: SHARD_COUNT }

/**
 * To work through a part costs nearly the same for one delivery and for all that are sent at once: those who are few go into one, by
 * turns, and the others into as many as they fill.
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
  /** Everybody else is left out, and told so. */
  onlyTestUsers: boolean
}

/**
 * One row for each candidate, with what was decided about it. Order of the decisions: whether anybody wants it, whether it is a
 * test, whether anybody can bring it.
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
  const runId = candidates.haveRuns ? sql`c.run_id` : sql`${NO_RUN}::uuid`
  const step = candidates.haveRuns ? sql`c.step` : sql`0`
  // Who was added once more gets nothing more.
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
          join (${candidates.rows}) c on ${candidates.isOfMessage}
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

/** Answers what was written, summed up. */
export const insertDeliveries = (db: Db, appId: AppId, expansion: Expansion, now: Date) =>
  db.query<ExpandedGroup>(expandStatement(appId, expansion, now), { prepare: expansion.candidates.areNamed ?? false })

/** The time zones of those who are meant, for what is sent at an hour of their own. */
export const zonesStatement = (appId: AppId, candidates: Candidates): Sql => sql`
  select distinct u.timezone_id as zone, case when u.timezone_id is null then c.timezone_seconds end as seconds
  from (${candidates.rows}) c
  left join lateral (
    select u.timezone_id from users u where u.app_id = ${appId} and u.id = c.user_id offset 0) u on true`

/** All that users have, of which no deliveries are made. */
export const candidatesOfUsers = (appId: AppId, userIds: readonly UserId[]): Pick<Candidates, 'rows'> => ({
  rows: sql`select s.type, s.token from subscriptions s where s.app_id = ${appId} and s.user_id = any(${userIds}::uuid[])`,
})

/** The domains of the mailboxes of those who are meant. */
export const emailDomainsStatement = (candidates: Pick<Candidates, 'rows'>): Sql => sql`
  select distinct lower(substring(c.token from '[^@]+$')) as domain
  from (${candidates.rows}) c
  where c.type = 'Email' and c.token is not null`

export const findEmailDomains = (db: Db, candidates: Pick<Candidates, 'rows'>) =>
  db.query<{ domain: string }>(emailDomainsStatement(candidates), UNPREPARED)

export const findZones = (db: Db, appId: AppId, candidates: Candidates) =>
  db.query<{ zone: string | null; seconds: number | null }>(zonesStatement(appId, candidates), UNPREPARED)
