// SQL on messages and the keys they were taken by. Deliveries and their counts have a store of their own.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, rows, type Sql, sql } from '../storage/sql.ts'
import { lockForCancel } from './cancel-lock.ts'
import type { IdempotencyKey, Message, MessageId, NewMessage } from './message.ts'

/** What is not there is null in the row, and so is what is the same for most: nobody has to write and read it. */
const messageRow = (it: NewMessage) => ({
  id: it.id,
  channel: it.channel,
  kind: it.kind === 1 ? undefined : it.kind,
  is_listed: it.isListed ? undefined : false,
  lane: it.lane === 'direct' ? undefined : it.lane,
  name: it.name ?? undefined,
  template_id: it.templateId ?? undefined,
  audience: it.audience,
  content: it.content,
  email_html: typeof it.emailHtml === 'string' ? it.emailHtml : undefined,
  email_html_by_language: typeof it.emailHtml === 'string' ? undefined : (it.emailHtml ?? undefined),
  options: it.options,
  send_after: it.sendAfter.toJSON(),
})

const columns = sql`id, channel, kind, is_listed, lane, name, template_id, audience, content, email_html, email_html_by_language, options,
  send_after`
const columnTypes = sql`id uuid, channel text, kind smallint, is_listed boolean, lane text, name text, template_id uuid,
  audience jsonb, content jsonb, email_html text, email_html_by_language jsonb, options jsonb, send_after timestamptz`
/** The columns of `g`, a row as above, with what it leaves out. */
const completed = sql`g.id, g.channel, coalesce(g.kind, 1::smallint) as kind, coalesce(g.is_listed, true) as is_listed,
  coalesce(g.lane, 'direct') as lane, g.name, g.template_id, g.audience, g.content, g.email_html, g.email_html_by_language,
  g.options, g.send_after`

/** A message that waits to be stored, with whom it names and what it is recognized by. */
export type Submission = {
  message: NewMessage
  /** Types of subscription that it can go to. */
  types: readonly string[]
  /** Who is named: users by id or alias, or subscriptions; undefined where nobody is. */
  targets: readonly ({ id: string } | { label: string; value: string } | { subscriptionId: string })[] | undefined
  keys: readonly IdempotencyKey[]
  requestHash: string
}

/** What became of it. `unsubscribed` are places among its targets, one for each subscription that is there and cannot be reached. */
export type InsertResult = {
  isStored: boolean
  recipients: number | null
  unsubscribed: number[]
  isHeld: boolean
  /** A job was not waiting already, or for a later time. The same for all. */
  hasNewJobs: boolean
}

/**
 * Store messages, but for those that name people of whom none can be reached, and those of which a key was taken after
 * `keysFrom`. One statement: who is named is looked up in it, so that accepting a message costs no question of its own.
 * `user` is whom a row of `r` names. Nothing is stored while `isHeld`, where that is heeded. `jobs` are written for what was
 * `stored`. Of messages with the same key only one may be among them.
 */
export async function insertSubmissions(
  db: Db,
  appId: AppId,
  user: Sql,
  isHeld: Sql,
  jobs: Sql,
  list: readonly Submission[],
  { now, keysFrom, heedsHold }: { now: Date; keysFrom: Date; heedsHold: boolean },
): Promise<InsertResult[]> {
  // There are a few lists of types, and many messages.
  const lists = [...new Set(list.map(({ types }) => types))]
  const given = list.map(({ message, types, targets, keys }, m) => ({
    ...messageRow(message),
    m,
    types: lists.indexOf(types) || undefined,
    names_nobody: targets === undefined || undefined,
    takes_all: message.options.includeUnsubscribed || undefined,
    key_count: keys.length || undefined,
  }))
  const targets = list.flatMap(({ targets }, m) =>
    (targets ?? []).map((target, place) =>
      'subscriptionId' in target ? { m, place, subscription_id: target.subscriptionId } : { m, place, ...target },
    ),
  )
  const keys = list.flatMap(({ keys, requestHash }, m) => keys.map((key) => ({ m, ...key, hash: requestHash })))
  // Most messages have no keys, and then the table of keys need not be opened.
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
      where message_keys.taken_at <= ${keysFrom}::timestamptz
      returning message_id)`
  return db.query<InsertResult>(sql`
    with held as materialized (
      select ${heedsHold}::boolean and ${isHeld} as is_held
    ), given as materialized (
      select g.m, g.types, g.names_nobody, g.takes_all, g.key_count, ${completed}
      from jsonb_to_recordset(${rows(given)}::jsonb)
        as g(m integer, types integer, names_nobody boolean, takes_all boolean, key_count integer, ${columnTypes})
    ), named as materialized (
      select r.m, r.place, r.subscription_id, case when r.subscription_id is null then ${user} end as user_id
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
        from found f join given g on g.m = f.m and (${JSON.stringify(lists)}::jsonb -> coalesce(g.types, 0)) ? f.type
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

/** Messages of the server's own making: nobody is looked up, and they have no keys. */
export const insertMessages = (db: Db, appId: AppId, list: readonly NewMessage[], now: Date) =>
  db.query(sql`
    insert into messages (app_id, ${columns}, queued_at)
    select a.id, ${completed}, ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows(list.map(messageRow))}::jsonb) as g(${columnTypes})
    where a.id = ${appId}`)

/** One that takes recipients from now on. All its deliveries are of this moment's month, whenever they are written. */
export const insertOpenMessage = (db: Db, appId: AppId, message: NewMessage, now: Date) =>
  db.query(sql`
    insert into messages (app_id, ${columns}, queued_at, state, expand_at)
    select a.id, ${completed}, ${now}::timestamptz, 'expanding', ${now}::timestamptz
    from apps a cross join jsonb_to_recordset(${rows([messageRow(message)])}::jsonb) as g(${columnTypes})
    where a.id = ${appId}`)

/** Keys that were taken for messages that were then not stored: another of their keys was somebody else's. */
export const releaseKeys = (db: Db, appId: AppId, list: readonly Pick<Submission, 'message' | 'keys'>[]) =>
  db.query(sql`
    delete from message_keys k
    using jsonb_to_recordset(${rows(list.flatMap(({ message: { id }, keys }) => keys.map((key) => ({ ...key, id }))))}::jsonb)
      as r(name text, key uuid, id uuid)
    where k.app_id = ${appId} and k.name = r.name and k.key = r.key and k.message_id = r.id`)

export type TakenKey = IdempotencyKey & {
  messageId: MessageId
  requestHash: string
  answer: { recipients: number | null; unsubscribed: number[] }
}

export const findTakenKeys = (db: Db, appId: AppId, keys: readonly IdempotencyKey[], keysFrom: Date) =>
  db.query<TakenKey>(sql`
    select k.name, k.key, k.message_id, encode(k.request_hash, 'hex') as request_hash, k.answer
    from message_keys k join jsonb_to_recordset(${rows(keys)}::jsonb) as r(name text, key uuid)
      on k.name = r.name and k.key = r.key
    where k.app_id = ${appId} and k.taken_at > ${keysFrom}`)

/** How many there were, of at most `limit`. */
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

// ---- reading

const messageColumns = sql`m.id, m.channel, m.kind, m.is_listed, m.lane, m.state, m.name, m.template_id, m.content,
  coalesce(to_jsonb(m.email_html), m.email_html_by_language) as email_html,
  m.options, m.queued_at, m.send_after, m.expand_at, m.expanded_to, m.expanded_count, m.completed_at, m.canceled_at`

export async function findMessage(db: Db, appId: AppId, id: MessageId): Promise<Message | undefined> {
  const [found] = await db.query<Message>(sql`
    select ${messageColumns}, m.audience from messages m where m.app_id = ${appId} and m.id = ${id}`)
  return found
}

/** Who changes the message waits, and who marks deliveries of it as sending. */
export async function lockMessage(db: Db, appId: AppId, id: MessageId) {
  await lockForCancel(db, [id])
  const [found] = await db.query<Pick<Message, 'id' | 'state' | 'isListed'>>(sql`
    select m.id, m.state, m.is_listed from messages m where m.app_id = ${appId} and m.id = ${id} for update`)
  return found
}

/** Of the messages that stand in no list, those of which something may still be sent; locked in the order of their ids. */
export async function lockUnlistedMessages(db: Db, appId: AppId, ids: readonly MessageId[]): Promise<MessageId[]> {
  await lockForCancel(db, ids)
  const found = await db.query<{ id: MessageId }>(sql`
    select m.id from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and not m.is_listed and m.state not in ('done', 'canceled')
    order by m.id
    for update`)
  return found.map(({ id }) => id)
}

export const markCanceled = (db: Db, appId: AppId, ids: readonly MessageId[], now: Date) =>
  db.query(sql`
    update messages set state = 'canceled', canceled_at = ${now}, completed_at = null
    where app_id = ${appId} and id = any(${ids}::uuid[])`)

export type MessageCount = { messageId: MessageId; platform: string; state: string; reason: string; count: number }

export const findMessageCounts = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query<MessageCount>(sql`
    select c.message_id, c.platform, c.state, c.reason, sum(c.count)::bigint as count
    from message_counts c
    where c.app_id = ${appId} and c.message_id = any(${ids}::uuid[])
    group by c.message_id, c.platform, c.state, c.reason
    having sum(c.count) <> 0
    order by c.message_id, c.platform, c.state, c.reason`)

export type MessageFilter = { kind?: number | undefined; templateId?: string | undefined }
/** The last one that was seen; without an id, everything at this very moment was. */
export type MessageCursor = { sendAfter: Date; id: MessageId | undefined }

const listed = ({ kind, templateId }: MessageFilter) => sql`m.is_listed
  ${kind === undefined ? emptySql : sql`and m.kind = ${kind}::smallint`}
  ${templateId === undefined ? emptySql : sql`and m.template_id = ${templateId}::uuid`}`

/** Of thousands of people who are named, a list does not repeat the names. */
const shortAudience = sql`
  case when m.lane = 'bulk' then m.audience - 'ids' - 'given' - 'aliases' else m.audience end as audience`

export async function countMessages(db: Db, appId: AppId, filter: MessageFilter): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from messages m where m.app_id = ${appId} and ${listed(filter)}`)
  return row?.total ?? 0
}

/** Newest first. */
export const findNewestMessages = (db: Db, appId: AppId, filter: MessageFilter, limit: number, offset: number) =>
  db.query<Message>(sql`
    select ${messageColumns}, ${shortAudience}
    from messages m
    where m.app_id = ${appId} and ${listed(filter)}
    order by m.queued_at desc, m.id desc
    limit ${limit} offset ${offset}`)

/** In the order of their time, after this place. */
export const findMessagesAfter = (
  db: Db,
  appId: AppId,
  filter: MessageFilter,
  { sendAfter, id }: MessageCursor,
  limit: number,
) =>
  db.query<Message>(sql`
    select ${messageColumns}, ${shortAudience}
    from messages m
    where m.app_id = ${appId} and ${listed(filter)}
      and ${
        id === undefined
          ? sql`m.send_after > ${sendAfter}::timestamptz`
          : sql`m.send_after >= ${sendAfter}::timestamptz and (m.send_after, m.id) > (${sendAfter}::timestamptz, ${id}::uuid)`
      }
    order by m.send_after, m.id
    limit ${limit}`)
