// The audience of a tree: which subscriptions of an app it means. This is the seam for whoever sends: counting, naming the
// recipients of a channel, and going through all of them at the same cost per page.
// The statements are made at run time, so none of them is prepared.

import type { SubscriptionId, UserId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, joined, type Sql, sql } from '../storage/sql.ts'
import type { subscriptionTypes } from '../users/subscriptions/subscription.ts'
import { type AudienceScope, type CompiledFilter, compileFilter } from './filters/compile.ts'
import { channelOfType } from './filters/evaluate.ts'
import { type AudienceChannel, audienceChannels, type FilterNode } from './filters/tree.ts'

const UNPREPARED = { prepare: false } as const

/** Subscriptions, and of the rest only what the condition reads. */
function fromClause({ appId }: AudienceScope, { condition, reads }: CompiledFilter): Sql {
  const user = reads.has('user') ? sql`join users u on u.app_id = ${appId} and u.id = s.user_id` : emptySql
  const activity = reads.has('activity')
    ? sql`left join subscription_activity t on t.app_id = ${appId} and t.subscription_id = s.id`
    : emptySql
  return sql`subscriptions s ${user} ${activity} where s.app_id = ${appId} and ${condition}`
}

/** Rows of `id` and `user_id`, one for each subscription that is meant, to be put into a statement. */
export const selectAudience = (node: FilterNode, scope: AudienceScope): Sql =>
  sql`select s.id, s.user_id from ${fromClause(scope, compileFilter(node, scope))}`

/** Those of the node that can be sent something, on one channel or on any. */
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
 * How many subscriptions are meant. Where only the user decides, nobody's subscriptions are looked up: each user knows how
 * many it has.
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

/** How many of them can be sent something, by channel. */
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
  /** For each node, in their order. */
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

/** The other way round: which of these nodes mean each of these subscriptions. Those that are not there are left out. */
export const matchSubscriptions = (
  db: Db,
  nodes: readonly FilterNode[],
  scope: AudienceScope,
  ids: readonly SubscriptionId[],
) => db.query<SubscriptionMatch>(matchSubscriptionsStatement(nodes, scope, ids), UNPREPARED)

export type UserMatch = {
  userId: UserId
  /** For each node, in their order: whether any of the user's subscriptions is meant. */
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

/** The same for users. Those who have no subscription are left out: a segment is made of subscriptions. */
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

/** Users of an audience in the order of their ids, which are random: any part of them is a fair sample. 16 bytes for each. */
export type UserList = { total: number; size: number; slice(from: number, to: number): UserId[] }

/** Those of whom any subscription is meant by the first and none by the second: how many, and `most` of them. */
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

/** A stretch of an app's subscriptions in the order of their ids; without an end it goes to the last one. */
export type SubscriptionRange = { after: SubscriptionId | undefined; upTo: SubscriptionId | undefined }

const afterId = (after: SubscriptionId | undefined): Sql =>
  after === undefined ? emptySql : sql`and s.id > ${after}::uuid`

/** The end of the range that holds the next `size` subscriptions, whoever they are; undefined when no more follow. */
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
 * The audience among the subscriptions of a range. Each level is fenced (`offset 0`), so that the range is read first and
 * then the user of each: left to itself the planner may look at all users of the app for every page, which is what a page
 * is there to avoid.
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

/** The ids of a range as one text, a list in PostgreSQL's own notation: ten thousand are handed on without being looked at. */
export const idsStatement = (ids: Sql): Sql => sql`select coalesce(array_agg(i.id), '{}')::text as ids from (${ids}) i`

export type IdsRow = { ids: string }

export function pageStatement(node: FilterNode, scope: AudienceScope, range: SubscriptionRange, limit?: number): Sql {
  const most = limit === undefined ? emptySql : sql`limit ${limit}`
  return sql`${audienceInRange(node, scope, range)} order by s.id ${most}`
}

/** Who is meant among the subscriptions of a range: a page costs what its range costs, however few are found in it. */
export const findInRange = (
  db: Db,
  node: FilterNode,
  scope: AudienceScope,
  range: SubscriptionRange,
  limit?: number,
): Promise<AudienceMember[]> => db.query<AudienceMember>(pageStatement(node, scope, range, limit), UNPREPARED)
