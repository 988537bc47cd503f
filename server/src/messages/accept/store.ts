// SQL that stores accepted messages with their keys and jobs.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, type Sql, sql } from '../../storage/sql.ts'
import type { IdempotencyKey, MessageId, NewMessage } from '../message.ts'
import type { Submission } from './submission.ts'

/** Leaves out null fields and default values, which `completedColumns` restores: less JSON to write and to parse. */
const messageRow = (message: NewMessage) => ({
  id: message.id,
  channel: message.channel,
  kind: message.kind === 1 ? undefined : message.kind,
  is_listed: message.isListed ? undefined : false,
  lane: message.lane === 'direct' ? undefined : message.lane,
  name: message.name ?? undefined,
  template_id: message.templateId ?? undefined,
  audience: message.audience,
  content: message.content,
  email_html: typeof message.emailHtml === 'string' ? message.emailHtml : undefined,
  email_html_by_language: typeof message.emailHtml === 'string' ? undefined : (message.emailHtml ?? undefined),
  options: message.options,
  send_after: message.sendAfter.toJSON(),
})

const columns = sql`id, channel, kind, is_listed, lane, name, template_id, audience, content, email_html, email_html_by_language, options,
  send_after`
const columnTypes = sql`id uuid, channel text, kind smallint, is_listed boolean, lane text, name text, template_id uuid,
  audience jsonb, content jsonb, email_html text, email_html_by_language jsonb, options jsonb, send_after timestamptz`
/** The columns of a row `g`, with the default values that `messageRow` leaves out. */
const completedColumns = sql`g.id, g.channel, coalesce(g.kind, 1::smallint) as kind, coalesce(g.is_listed, true) as is_listed,
  coalesce(g.lane, 'direct') as lane, g.name, g.template_id, g.audience, g.content, g.email_html, g.email_html_by_language,
  g.options, g.send_after`

/**
 * The result of one submission. `unsubscribed` holds indexes into its targets, one for each subscription that exists
 * but cannot be reached. `recipients` is null for messages that name no targets.
 */
export type InsertResult = {
  isStored: boolean
  recipients: number | null
  unsubscribed: number[]
  isHeld: boolean
  /** True if a job was added or became due earlier. All results of a statement have the same value. */
  hasNewJobs: boolean
}

export type InsertInput = {
  submissions: readonly Submission[]
  /** If true, nothing is stored while sending is on hold. */
  respectsHold: boolean
  now: Date
  /** Keys that were taken at this time or earlier are free again. */
  oldestKeyTime: Date
}

/**
 * Stores messages together with their keys and jobs. Skips messages whose named targets are all unreachable, and
 * messages with a key that is taken. Looks up the targets in the same statement, so that accepting a message costs one
 * round trip. No two submissions may share a key. `userId` is the id of the user whom a row `r` of targets names,
 * `isHeld` whether sending is on hold, and `jobs` inserts the jobs of the messages in `stored`.
 */
export async function insertSubmissions(
  db: Db,
  appId: AppId,
  userId: Sql,
  isHeld: Sql,
  jobs: Sql,
  { submissions, respectsHold, now, oldestKeyTime }: InsertInput,
): Promise<InsertResult[]> {
  // There are few distinct lists of types and many messages: each message refers to its list by index.
  const typeLists = [...new Set(submissions.map(({ types }) => types))]
  const messages = submissions.map(({ message, types, targets, keys }, m) => ({
    ...messageRow(message),
    m,
    types: typeLists.indexOf(types) || undefined,
    names_nobody: targets === undefined || undefined,
    takes_all: message.options.includeUnsubscribed || undefined,
    key_count: keys.length || undefined,
  }))
  const targets = submissions.flatMap(({ targets }, m) =>
    (targets ?? []).map((target, index) =>
      'subscriptionId' in target
        ? { m, place: index, subscription_id: target.subscriptionId }
        : { m, place: index, ...target },
    ),
  )
  const keys = submissions.flatMap(({ keys, requestHash }, m) => keys.map((key) => ({ m, ...key, hash: requestHash })))
  // Most messages have no keys; the statement then leaves the table of keys out.
  const taken =
    keys.length === 0
      ? sql`taken as (select null::uuid as message_id where false)`
      : sql`taken as (
      insert into message_keys (app_id, name, key, message_id, request_hash, answer, taken_at)
      select a.id, k.name, k.key, g.id, decode(k.hash, 'hex'),
        jsonb_build_object('recipients', g.recipients, 'unsubscribed', g.unsubscribed), ${now}::timestamptz
      from apps a
      cross join jsonb_to_recordset(${rows(keys)}::jsonb) as k(m integer, name text, key uuid, hash text)
      join probed g on g.m = k.m
      where a.id = ${appId} and not (select h.is_held from held h) and (g.recipients is null or g.recipients > 0)
      order by k.name, k.key
      on conflict (app_id, name, key) do update
      set message_id = excluded.message_id, request_hash = excluded.request_hash, answer = excluded.answer,
        taken_at = excluded.taken_at
      where message_keys.taken_at <= ${oldestKeyTime}::timestamptz
      returning message_id)`
  return db.query<InsertResult>(sql`
    with held as materialized (
      select ${respectsHold}::boolean and ${isHeld} as is_held
    ), given as materialized (
      select g.m, g.types, g.names_nobody, g.takes_all, g.key_count, ${completedColumns}
      from jsonb_to_recordset(${rows(messages)}::jsonb)
        as g(m integer, types integer, names_nobody boolean, takes_all boolean, key_count integer, ${columnTypes})
    ), named as materialized (
      select r.m, r.place, r.subscription_id, case when r.subscription_id is null then ${userId} end as user_id
      from jsonb_to_recordset(${rows(targets)}::jsonb)
        as r(m integer, place integer, id uuid, label text, value text, subscription_id uuid)
    ), found as materialized (
      select n.m, n.place, s.id, s.type, s.has_token, s.is_subscribed
      from named n cross join lateral (
        select ${reached}
        from subscriptions s where s.app_id = ${appId} and s.id = n.subscription_id offset 0) s
      union all
      select n.m, n.place, s.id, s.type, s.has_token, s.is_subscribed
      from named n cross join lateral (
        select ${reached}
        from subscriptions s where s.app_id = ${appId} and s.user_id = n.user_id offset 0) s
    ), reached as materialized (
      select f.m, count(distinct f.id) filter (where f.is_reached) as recipients,
        jsonb_agg(f.place order by f.place) filter (where not f.is_reached) as unsubscribed
      from (
        select f.m, f.place, f.id, f.is_subscribed or (g.takes_all is true and f.has_token) as is_reached
        from found f join given g on g.m = f.m and (${JSON.stringify(typeLists)}::jsonb -> coalesce(g.types, 0)) ? f.type
      ) f
      group by f.m
    ), probed as materialized (
      select g.m, g.key_count, ${prefixed}, coalesce(f.unsubscribed, '[]') as unsubscribed,
        case when g.names_nobody is null then coalesce(f.recipients, 0) end as recipients
      from given g left join reached f on f.m = g.m
    ), ${taken}, stored as (
      insert into messages (app_id, ${columns}, queued_at)
      select a.id, ${prefixed}, ${now}::timestamptz
      from apps a cross join probed g
      where a.id = ${appId} and not (select h.is_held from held h) and (g.recipients is null or g.recipients > 0) and (
        g.key_count is null
        or (g.id, g.key_count) in (select t.message_id, count(*)::integer from taken t group by t.message_id))
      returning id
    ), queued as (${jobs})
    select g.id in (select s.id from stored s) as is_stored, g.recipients, g.unsubscribed, h.is_held,
      exists (select 1 from queued) as has_new_jobs
    from probed g cross join held h
    order by g.m`)
}

const reached = sql`s.id, s.type, s.token is not null as has_token,
  s.enabled and s.token is not null and coalesce(s.notification_types, 1) > 0 as is_subscribed`

const prefixed = sql`g.id, g.channel, g.kind, g.is_listed, g.lane, g.name, g.template_id, g.audience, g.content, g.email_html,
  g.email_html_by_language, g.options, g.send_after`

/**
 * Stores a message to which recipients can be added from now on. All its deliveries belong to the month of `now`,
 * whenever they are written.
 */
export const insertOpenMessage = (db: Db, appId: AppId, message: NewMessage, now: Date) =>
  db.query(sql`
    insert into messages (app_id, ${columns}, queued_at, state, expand_at)
    select a.id, ${completedColumns}, ${now}::timestamptz, 'expanding', ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows([messageRow(message)])}::jsonb) as g(${columnTypes})
    where a.id = ${appId}`)

/** Deletes the keys of messages that were not stored because another of their keys was taken. */
export const releaseKeys = (db: Db, appId: AppId, submissions: readonly Pick<Submission, 'message' | 'keys'>[]) =>
  db.query(sql`
    delete from message_keys k
    using jsonb_to_recordset(${rows(submissions.flatMap(({ message: { id }, keys }) => keys.map((key) => ({ ...key, id }))))}::jsonb)
      as r(name text, key uuid, id uuid)
    where k.app_id = ${appId} and k.name = r.name and k.key = r.key and k.message_id = r.id`)

export type TakenKey = IdempotencyKey & {
  messageId: MessageId
  requestHash: string
  answer: { recipients: number | null; unsubscribed: number[] }
}

export const findTakenKeys = (db: Db, appId: AppId, keys: readonly IdempotencyKey[], oldestKeyTime: Date) =>
  db.query<TakenKey>(sql`
    select k.name, k.key, k.message_id, encode(k.request_hash, 'hex') as request_hash, k.answer
    from message_keys k join jsonb_to_recordset(${rows(keys)}::jsonb) as r(name text, key uuid)
      on k.name = r.name and k.key = r.key
    where k.app_id = ${appId} and k.taken_at > ${oldestKeyTime}`)

/** Deletes at most `limit` keys, and returns how many it deleted. */
export async function deleteKeysBefore(db: Db, appId: AppId, until: Date, limit: number): Promise<number> {
  const deleted = await db.query(sql`
    delete from message_keys
    where app_id = ${appId} and ctid = any(array(
      select ctid from message_keys
      where app_id = ${appId} and taken_at <= ${until}
      order by taken_at
      limit ${limit}
      for update skip locked))
    returning key`)
  return deleted.length
}
