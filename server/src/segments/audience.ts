// Selects the audience of a filter tree: the subscriptions of an app that match it. Senders use it to count an
// audience, to find the recipients on a channel, and to page through all of them at a constant cost per page. The
// statements are built at run time, so none of them is prepared.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, joined, type Sql, sql } from '../storage/sql.ts'
import type { subscriptionTypes } from '../users/subscriptions/subscription.ts'
import { type AudienceScope, type CompiledFilter, compileFilter } from './filters/compile.ts'
import { channelOfType } from './filters/evaluate.ts'
import { type AudienceChannel, audienceChannels, type FilterNode } from './filters/tree.ts'

const UNPREPARED = { prepare: false } as const

/** Joins only the tables that the condition reads. */
function fromClause({ appId }: AudienceScope, { condition, reads }: CompiledFilter): Sql {
  const user = reads.has('user') ? sql`join users u on u.app_id = ${appId} and u.id = s.user_id` : emptySql
  const activity = reads.has('activity')
    ? sql`left join subscription_activity t on t.app_id = ${appId} and t.subscription_id = s.id`
    : emptySql
  return sql`subscriptions s ${user} ${activity} where s.app_id = ${appId} and ${condition}`
}

/** A subquery that yields the `id` and `user_id` of each matching subscription. */
export const selectAudience = (node: FilterNode, scope: AudienceScope): Sql =>
  sql`select s.id, s.user_id from ${fromClause(scope, compileFilter(node, scope))}`

/** Restricts the node to subscriptions that can be sent to, on one channel or on any. */
export const restrictToReachable = (node: FilterNode, channel?: AudienceChannel): FilterNode => ({
  kind: 'all',
  of: [node, isSubscribed, ...(channel ? [{ kind: 'channel' as const, channel }] : [])],
})

const isSubscribed: FilterNode = {
  kind: 'clause',
  entry: 'subscribed',
  filter: { field: 'subscribed', relation: '=', value: 'true' },
  field: 'subscribed',
  key: '',
  test: { kind: 'is', want: true },
}

/**
 * Counts the matching subscriptions. When the condition reads only users, subscriptions are not read at all, because
 * each user stores how many it has.
 */
export function countStatement(node: FilterNode, scope: AudienceScope): Sql {
  const compiled = compileFilter(node, scope)
  const isUsersAlone = compiled.reads.size === 1 && compiled.reads.has('user')
  return isUsersAlone
    ? sql`select coalesce(sum(u.subscription_count), 0) as total from users u
        where u.app_id = ${scope.appId} and ${compiled.condition}`
    : sql`select count(*) as total from ${fromClause(scope, compiled)}`
}

export async function countAudience(db: Db, node: FilterNode, scope: AudienceScope): Promise<number> {
  const [row] = await db.query<{ total: number }>(countStatement(node, scope), UNPREPARED)
  return row?.total ?? 0
}

export const countByTypeStatement = (node: FilterNode, scope: AudienceScope): Sql =>
  sql`select s.type, count(*) as total from ${fromClause(scope, compileFilter(node, scope))} group by s.type`

/** Counts the matching subscriptions that can be sent to, by channel. */
export async function countRecipients(
  db: Db,
  node: FilterNode,
  scope: AudienceScope,
): Promise<Record<AudienceChannel, number>> {
  const rows = await db.query<{ type: (typeof subscriptionTypes)[number]; total: number }>(
    countByTypeStatement(restrictToReachable(node), scope),
    UNPREPARED,
  )
  const counts = Object.fromEntries(audienceChannels.map((channel) => [channel, 0])) as Record<AudienceChannel, number>
  for (const { type, total } of rows) {
    const channel = channelOfType(type)
    if (channel) counts[channel] += total
  }
  return counts
}

export type SubscriptionMatch = {
  id: SubscriptionId
  userId: UserId
  type: (typeof subscriptionTypes)[number]
  /** One entry for each node, in order. */
  matches: boolean[]
}

export function matchSubscriptionsStatement(
  nodes: readonly FilterNode[],
  scope: AudienceScope,
  ids: readonly SubscriptionId[],
): Sql {
  const { appId } = scope
  const conditions = nodes.map((node) => sql`coalesce(${compileFilter(node, scope).condition}, false)`)
  return sql`
    select s.id, s.user_id, s.type, array[${joined(conditions, ', ')}]::boolean[] as matches
    from subscriptions s join users u on u.app_id = ${appId} and u.id = s.user_id
      left join subscription_activity t on t.app_id = ${appId} and t.subscription_id = s.id
    where s.app_id = ${appId} and s.id = any(${ids}::uuid[])`
}

/**
 * The reverse: tells which of the nodes match each of these subscriptions. Subscriptions that do not exist are left
 * out.
 */
export const matchSubscriptions = (
  db: Db,
  nodes: readonly FilterNode[],
  scope: AudienceScope,
  ids: readonly SubscriptionId[],
) => db.query<SubscriptionMatch>(matchSubscriptionsStatement(nodes, scope, ids), UNPREPARED)

export type UserMatch = {
  userId: UserId
  /** For each node, in order: whether any subscription of the user matches. */
  matches: boolean[]
}

export function matchUsersStatement(
  nodes: readonly FilterNode[],
  scope: AudienceScope,
  userIds: readonly UserId[],
): Sql {
  const { appId } = scope
  const conditions = nodes.map((node) => sql`coalesce(bool_or(${compileFilter(node, scope).condition}), false)`)
  return sql`
    select s.user_id, array[${joined(conditions, ', ')}]::boolean[] as matches
    from subscriptions s join users u on u.app_id = ${appId} and u.id = s.user_id
      left join subscription_activity t on t.app_id = ${appId} and t.subscription_id = s.id
    where s.app_id = ${appId} and s.user_id = any(${userIds}::uuid[])
    group by s.user_id`
}

/** The same for users. Users without a subscription are left out, because a segment consists of subscriptions. */
export const matchUsers = (db: Db, nodes: readonly FilterNode[], scope: AudienceScope, userIds: readonly UserId[]) =>
  db.query<UserMatch>(matchUsersStatement(nodes, scope, userIds), UNPREPARED)

export function usersStatement(
  included: FilterNode,
  excluded: FilterNode | undefined,
  scope: AudienceScope,
  most: number,
): Sql {
  const others = excluded ? sql`except select e.user_id from (${selectAudience(excluded, scope)}) e` : emptySql
  return sql`
    with members as materialized (
      select distinct i.user_id from (${selectAudience(included, scope)}) i ${others})
    select (select count(*) from members) as total,
      (select string_agg(uuid_send(m.user_id), ''::bytea order by m.user_id)
        from (select n.user_id from members n order by n.user_id limit ${most}) m) as ids`
}

const ID_BYTES = 16

/**
 * Users of an audience, ordered by their ids. Ids are random, so any part of the list is a fair sample. Takes 16 bytes
 * per user.
 */
export type UserList = { total: number; size: number; slice(from: number, to: number): UserId[] }

/**
 * Users with a subscription that matches `included` and none that matches `excluded`: their total, and up to `most`
 * ids.
 */
export async function listUsers(
  db: Db,
  included: FilterNode,
  excluded: FilterNode | undefined,
  scope: AudienceScope,
  most: number,
): Promise<UserList> {
  const statement = usersStatement(included, excluded, scope, most)
  const [row] = await db.query<{ total: number; ids: Buffer | null }>(statement, UNPREPARED)
  const ids = row?.ids ?? Buffer.alloc(0)
  const size = ids.length / ID_BYTES
  const idAt = (n: number): UserId =>
    ids.toString('hex', n * ID_BYTES, (n + 1) * ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return {
    total: row?.total ?? 0,
    size,
    slice: (from, to) => Array.from({ length: Math.max(0, Math.min(to, size) - from) }, (_, n) => idAt(from + n)),
  }
}

const MEMBER_COLUMNS = sql`s.id, s.user_id`

export type AudienceMember = { id: SubscriptionId; userId: UserId }

/** A range of an app's subscriptions, ordered by id; without `upTo` it extends to the last one. */
export type SubscriptionRange = { after: SubscriptionId | undefined; upTo: SubscriptionId | undefined }

const afterId = (after: SubscriptionId | undefined): Sql =>
  after === undefined ? emptySql : sql`and s.id > ${after}::uuid`

/**
 * The end of the range that contains the next `size` subscriptions, matching or not; undefined when no more follow it.
 */
export async function findRangeEnd(
  db: Db,
  { appId }: AudienceScope,
  after: SubscriptionId | undefined,
  size: number,
): Promise<SubscriptionId | undefined> {
  const [row] = await db.query<{ id: SubscriptionId }>(sql`
    select s.id from subscriptions s where s.app_id = ${appId} ${afterId(after)} order by s.id offset ${size - 1} limit 1`)
  return row?.id
}

/**
 * Selects the matching subscriptions of a range. Each level is fenced (`offset 0`), so that PostgreSQL reads the range
 * first and then the user of each subscription. Without the fences, the planner may read all users of the app for every
 * page, which paging is meant to avoid.
 */
export function audienceInRange(
  node: FilterNode,
  scope: AudienceScope,
  { after, upTo }: SubscriptionRange,
  columns = MEMBER_COLUMNS,
): Sql {
  const { appId } = scope
  const { condition, reads } = compileFilter(node, scope)
  const end = upTo === undefined ? emptySql : sql`and s.id <= ${upTo}::uuid`
  const user = reads.has('user')
    ? sql`cross join lateral (
        select u.id, u.tags, u.language, u.country, u.lat, u.long, u.amount_spent, u.test_user_name
        from users u where u.app_id = ${appId} and u.id = s.user_id offset 0) u`
    : emptySql
  const activity = reads.has('activity')
    ? sql`left join lateral (
        select t.last_active, t.session_count, t.session_time
        from subscription_activity t where t.app_id = ${appId} and t.subscription_id = s.id offset 0) t on true`
    : emptySql
  return sql`
    select ${columns}
    from (
      select s.id, s.user_id, s.type, s.token, s.enabled, s.notification_types, s.rooted, s.app_version, s.language,
        s.country, s.lat, s.long, s.timezone_seconds, s.created_at
      from subscriptions s where s.app_id = ${appId} ${afterId(after)} ${end} offset 0) s ${user} ${activity}
    where ${condition}`
}

/**
 * Returns the ids of a range as one text, a list in PostgreSQL's array notation, so that ten thousand ids are passed on
 * without being parsed.
 */
export const idsStatement = (ids: Sql): Sql => sql`select coalesce(array_agg(i.id), '{}')::text as ids from (${ids}) i`

export type IdsRow = { ids: string }

export function pageStatement(node: FilterNode, scope: AudienceScope, range: SubscriptionRange, limit?: number): Sql {
  const most = limit === undefined ? emptySql : sql`limit ${limit}`
  return sql`${audienceInRange(node, scope, range)} order by s.id ${most}`
}

/** Finds the matching subscriptions of a range. The cost depends on the size of the range, however few match. */
export const findInRange = (
  db: Db,
  node: FilterNode,
  scope: AudienceScope,
  range: SubscriptionRange,
  limit?: number,
): Promise<AudienceMember[]> => db.query<AudienceMember>(pageStatement(node, scope, range, limit), UNPREPARED)
