// Compiles a filter tree into one SQL condition over `subscriptions s`, its user `u` and its activity `t`. Everything
// that a customer wrote is a bound value. evaluate.ts implements the same semantics, clause by clause.

import type { AppId } from '../../lib/ids.ts'
import { joined, type Sql, sql } from '../../storage/sql.ts'
import { EXTERNAL_ID } from '../../users/aliases/identity.ts'
import { pushTypeSql, reachableSql } from '../../users/subscriptions/reachable.ts'
import type { ClauseTest, Comparison, FilterClause, FilterField, FilterNode } from './tree.ts'
import {
  DECIMAL,
  daysBefore,
  EMPTY_PARTS,
  haversineOfDistance,
  hoursBefore,
  RADIANS,
  toUnixSeconds,
  VERSION,
} from './values.ts'

/** The app, and the time to which every time condition refers. */
export type AudienceScope = { appId: AppId; now: Date }

export type JoinedTable = 'subscription' | 'user' | 'activity'

export type CompiledFilter = {
  /** True for matching subscriptions; false or null for all others. */
  condition: Sql
  reads: ReadonlySet<JoinedTable>
}

export function compileFilter(node: FilterNode, scope: AudienceScope): CompiledFilter {
  return { condition: compileNode(node, scope), reads: new Set(tablesReadBy(node)) }
}

const READS: Record<FilterField, readonly JoinedTable[]> = {
  tag: ['user'],
  external_user_id: ['user'],
  amount_spent: ['user'],
  bought_sku: ['user'],
  test_users: ['user'],
  email: ['user'],
  event: ['user'],
  country: ['user', 'subscription'],
  language: ['user', 'subscription'],
  location: ['user', 'subscription'],
  device_type: ['subscription'],
  app_version: ['subscription'],
  first_session: ['subscription'],
  rooted: ['subscription'],
  subscribed: ['subscription'],
  last_session: ['subscription', 'activity'],
  session_count: ['subscription', 'activity'],
  session_time: ['subscription', 'activity'],
}

function tablesReadBy(node: FilterNode): readonly JoinedTable[] {
  if (node.kind === 'clause') return READS[node.field]
  return 'of' in node ? node.of.flatMap(tablesReadBy) : ['subscription']
}

function compileNode(node: FilterNode, scope: AudienceScope): Sql {
  switch (node.kind) {
    case 'clause':
      return compileClause(node, scope)
    case 'users':
      return sql`s.user_id = any(${node.ids}::uuid[])`
    case 'channel':
      if (node.channel === 'email') return sql`s.type = 'Email'`
      if (node.channel === 'sms') return sql`s.type = 'SMS'`
      return sql`${pushTypeSql(sql`s`)}`
    default: {
      const inner = node.of.map((child) => compileNode(child, scope))
      if (node.kind === 'all') return inner.length === 0 ? sql`true` : sql`(${joined(inner, ' and ')})`
      const any = inner.length === 0 ? sql`false` : sql`(${joined(inner, ' or ')})`
      // A plain `not` would exclude subscriptions for which the condition is null.
      return node.kind === 'any' ? any : sql`(${any} is not true)`
    }
  }
}

function compileClause(clause: FilterClause, scope: AudienceScope): Sql {
  const { test } = clause
  if (clause.field === 'external_user_id') return hasExternalIdSql(test, scope)
  if (test.kind === 'within') return isWithinSql(test)
  const seen = valueSql(clause, scope)
  switch (test.kind) {
    case 'present':
      return test.want ? sql`${seen} is not null` : sql`${seen} is null`
    case 'oneOf':
      return test.want ? isOneOfSql(seen, test.values) : sql`(${isOneOfSql(seen, test.values)} is not true)`
    case 'is':
      return test.want ? seen : sql`(${seen} is not true)`
    case 'number':
      return clause.field === 'tag'
        ? sql`case when ${seen} ~ ${DECIMAL} then ${seen}::numeric ${operator(test.relation)} ${test.value}::numeric end`
        : sql`${seen} ${operator(test.relation)} ${test.value}::numeric`
    case 'version':
      return compareVersionSql(seen, test)
    case 'elapsed':
      return sql`case when ${seen} ~ ${DECIMAL}
        then ${toUnixSeconds(scope.now)}::numeric - ${seen}::numeric ${operator(test.relation)} ${test.seconds}::numeric end`
    case 'ago':
      return test.relation === '>'
        ? sql`${seen} < ${hoursBefore(scope.now, test.hours)}::timestamptz`
        : sql`${seen} > ${hoursBefore(scope.now, test.hours)}::timestamptz`
    case 'happened':
      return sql`${seen} ${operator(test.relation)} ${test.count}::bigint`
  }
}

/** The value that a clause examines. */
function valueSql({ field, key, test }: FilterClause, scope: AudienceScope): Sql {
  const { appId } = scope
  switch (field) {
    case 'tag':
      return sql`(u.tags ->> ${key}::text)`
    case 'country':
      return sql`upper(coalesce(s.country, u.country) collate "C")`
    case 'language':
      return sql`lower(coalesce(s.language, u.language) collate "C")`
    case 'device_type':
      return sql`s.type`
    case 'app_version':
      return sql`s.app_version`
    case 'session_count':
      return sql`coalesce(t.session_count, 0)`
    case 'session_time':
      return sql`coalesce(t.session_time, 0)`
    case 'last_session':
      return sql`coalesce(t.last_active, s.created_at)`
    case 'first_session':
      return sql`s.created_at`
    case 'amount_spent':
      return sql`u.amount_spent`
    case 'bought_sku':
      return sql`(select ${spentSql} from purchases p where p.app_id = ${appId} and p.user_id = u.id and p.sku = ${key})`
    case 'rooted':
      return sql`coalesce(s.rooted, false)`
    case 'test_users':
      return sql`(u.test_user_name is not null)`
    case 'subscribed':
      return reachableSql(sql`s`)
    case 'email':
      // An address has at most one owner, so it is looked up once and not for each user.
      return sql`(u.id = (select e.user_id from subscriptions e
        where e.app_id = ${appId} and e.type = 'Email' and e.token_hash = decode(${key}, 'hex')))`
    case 'event':
      return countEventsSql(key, test, scope)
    default:
      // The other two fields have conditions of their own, above.
      throw new Error(`${field} is not one value`)
  }
}

/** The sum of purchases `p`. An amount may begin with a currency symbol. */
export const spentSql = sql`sum(case when p.amount ~ '^[^0-9]?[0-9]{1,15}([.][0-9]{1,9})?$'
  then substring(p.amount from '[0-9.]+$')::numeric * p.count end)`

/** Counts only one more event than the comparison needs, so that thousands of events are not counted to the end. */
function countEventsSql(name: string, test: ClauseTest, { appId, now }: AudienceScope): Sql {
  if (test.kind !== 'happened') throw new Error('events are counted, and nothing else')
  const since = test.days === undefined ? sql`` : sql`and e.at > ${daysBefore(now, test.days)}::timestamptz`
  return sql`(select count(*) from (
    select 1 from events e
    where e.app_id = ${appId} and e.user_id = u.id and e.name = ${name} and e.at <= ${now}::timestamptz ${since}
    limit ${test.count + 1}) counted)`
}

const isOneOfSql = (seen: Sql, values: string[]) =>
  values.length === 1 ? sql`${seen} = ${values[0]}::text` : sql`${seen} = any(${values}::text[])`

function hasExternalIdSql(test: ClauseTest, { appId }: AudienceScope): Sql {
  const among = test.kind === 'oneOf' ? sql`and a.value = any(${test.values}::text[])` : sql``
  const has = sql`exists (select 1 from aliases a
    where a.app_id = ${appId} and a.label = ${EXTERNAL_ID} and a.user_id = u.id ${among})`
  return 'want' in test && test.want ? has : sql`not ${has}`
}

function compareVersionSql(seen: Sql, { relation, value }: Extract<ClauseTest, { kind: 'version' }>): Sql {
  const parts = (text: Sql) => sql`string_to_array(regexp_replace(${text}, ${EMPTY_PARTS}, ''), '.')::bigint[]`
  const compared = (by: Comparison) =>
    sql`case when ${seen} ~ ${VERSION} then ${parts(seen)} ${operator(by)} ${parts(sql`${value}::text`)} end`
  return relation === '!=' ? sql`(${compared('=')} is not true)` : compared(relation)
}

/** Uses the location of the device, or else that of the user. */
function isWithinSql({ metres, lat, long }: Extract<ClauseTest, { kind: 'within' }>): Sql {
  const own = sql`s.lat is not null and s.long is not null`
  const [atLat, atLong] = [
    sql`case when ${own} then s.lat else u.lat end`,
    sql`case when ${own} then s.long else u.long end`,
  ]
  const half = (degrees: Sql, from: number) => sql`sin((${degrees} - ${from}::float8) * ${RADIANS}::float8 / 2)`
  return sql`power(${half(atLat, lat)}, 2) + ${Math.cos(lat * RADIANS)}::float8 * cos((${atLat}) * ${RADIANS}::float8)
    * power(${half(atLong, long)}, 2) <= ${haversineOfDistance(metres)}::float8`
}

const OPERATORS: Record<Comparison, Sql> = {
  '>': sql`>`,
  '<': sql`<`,
  '=': sql`=`,
  '!=': sql`<>`,
  '>=': sql`>=`,
  '<=': sql`<=`,
}
const operator = (relation: Comparison) => OPERATORS[relation]
