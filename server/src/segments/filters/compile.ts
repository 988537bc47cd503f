// A tree of conditions as one SQL condition over `subscriptions s`, its user `u` and its activity `t`. Everything a
// customer wrote is a bound value. evaluate.ts means the same, clause by clause.

import type { AppId } from '../../lib/ids.ts'
import { joined, type Sql, sql } from '../../storage/sql.ts'
import { EXTERNAL_ID } from '../../users/aliases/identity.ts'
import { pushTypeSql, reachableSql } from '../../users/subscriptions/reachable.ts'
import type { Clause, Comparison, Field, Node, Test } from './tree.ts'
import { DECIMAL, daysBefore, EMPTY_PARTS, hoursBefore, RADIANS, reach, secondsOf, VERSION } from './values.ts'

/** Whose subscriptions, and at what time: every condition that speaks of time means this one. */
export type Scope = { appId: AppId; now: Date }

export type Table = 'subscription' | 'user' | 'activity'

export type Compiled = {
  /** True for those who are meant; false or null for all others. */
  condition: Sql
  reads: ReadonlySet<Table>
}

export function compile(node: Node, scope: Scope): Compiled {
  return { condition: conditionOf(node, scope), reads: new Set(readsOf(node)) }
}

const READS: Record<Field, readonly Table[]> = {
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

function readsOf(node: Node): readonly Table[] {
  if (node.kind === 'clause') return READS[node.field]
  return 'of' in node ? node.of.flatMap(readsOf) : ['subscription']
}

function conditionOf(node: Node, scope: Scope): Sql {
  switch (node.kind) {
    case 'clause':
      return clauseOf(node, scope)
    case 'users':
      return sql`s.user_id = any(${node.ids}::uuid[])`
    case 'channel':
      if (node.channel === 'email') return sql`s.type = 'Email'`
      if (node.channel === 'sms') return sql`s.type = 'SMS'`
      return sql`${pushTypeSql(sql`s`)}`
    default: {
      const inner = node.of.map((child) => conditionOf(child, scope))
      if (node.kind === 'all') return inner.length === 0 ? sql`true` : sql`(${joined(inner, ' and ')})`
      const any = inner.length === 0 ? sql`false` : sql`(${joined(inner, ' or ')})`
      // "not" would take those out of whom nothing is known.
      return node.kind === 'any' ? any : sql`(${any} is not true)`
    }
  }
}

function clauseOf(clause: Clause, scope: Scope): Sql {
  const { test } = clause
  if (clause.field === 'external_user_id') return hasExternalId(test, scope)
  if (test.kind === 'within') return isWithin(test)
  const seen = seenBy(clause, scope)
  switch (test.kind) {
    case 'present':
      return test.want ? sql`${seen} is not null` : sql`${seen} is null`
    case 'oneOf':
      return test.want ? isOneOf(seen, test.values) : sql`(${isOneOf(seen, test.values)} is not true)`
    case 'is':
      return test.want ? seen : sql`(${seen} is not true)`
    case 'number':
      return clause.field === 'tag'
        ? sql`case when ${seen} ~ ${DECIMAL} then ${seen}::numeric ${operator(test.relation)} ${test.value}::numeric end`
        : sql`${seen} ${operator(test.relation)} ${test.value}::numeric`
    case 'version':
      return compareVersion(seen, test)
    case 'elapsed':
      return sql`case when ${seen} ~ ${DECIMAL}
        then ${secondsOf(scope.now)}::numeric - ${seen}::numeric ${operator(test.relation)} ${test.seconds}::numeric end`
    case 'ago':
      return test.relation === '>'
        ? sql`${seen} < ${hoursBefore(scope.now, test.hours)}::timestamptz`
        : sql`${seen} > ${hoursBefore(scope.now, test.hours)}::timestamptz`
    case 'happened':
      return sql`${seen} ${operator(test.relation)} ${test.count}::bigint`
  }
}

/** The value that a clause looks at. */
function seenBy({ field, key, test }: Clause, scope: Scope): Sql {
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
      return sql`(select ${spent} from purchases p where p.app_id = ${appId} and p.user_id = u.id and p.sku = ${key})`
    case 'rooted':
      return sql`coalesce(s.rooted, false)`
    case 'test_users':
      return sql`(u.test_user_name is not null)`
    case 'subscribed':
      return reachableSql(sql`s`)
    case 'email':
      // An address has one owner at most, who is looked up once and not for everybody.
      return sql`(u.id = (select e.user_id from subscriptions e
        where e.app_id = ${appId} and e.type = 'Email' and e.token_hash = decode(${key}, 'hex')))`
    case 'event':
      return countEvents(key, test, scope)
    default:
      // The two that are judged by a condition of their own, above.
      throw new Error(`${field} is not one value`)
  }
}

/** What purchases `p` add up to. Amounts may begin with the sign of a currency. */
export const spent = sql`sum(case when p.amount ~ '^[^0-9]?[0-9]{1,15}([.][0-9]{1,9})?$'
  then substring(p.amount from '[0-9.]+$')::numeric * p.count end)`

/** One more than the relation needs to know is enough: nobody's thousands of events are counted to the end. */
function countEvents(name: string, test: Test, { appId, now }: Scope): Sql {
  if (test.kind !== 'happened') throw new Error('events are counted, and nothing else')
  const since = test.days === undefined ? sql`` : sql`and e.at > ${daysBefore(now, test.days)}::timestamptz`
  return sql`(select count(*) from (
    select 1 from events e
    where e.app_id = ${appId} and e.user_id = u.id and e.name = ${name} and e.at <= ${now}::timestamptz ${since}
    limit ${test.count + 1}) counted)`
}

const isOneOf = (seen: Sql, values: string[]) =>
  values.length === 1 ? sql`${seen} = ${values[0]}::text` : sql`${seen} = any(${values}::text[])`

function hasExternalId(test: Test, { appId }: Scope): Sql {
  const among = test.kind === 'oneOf' ? sql`and a.value = any(${test.values}::text[])` : sql``
  const has = sql`exists (select 1 from aliases a
    where a.app_id = ${appId} and a.label = ${EXTERNAL_ID} and a.user_id = u.id ${among})`
  return 'want' in test && test.want ? has : sql`not ${has}`
}

function compareVersion(seen: Sql, { relation, value }: Extract<Test, { kind: 'version' }>): Sql {
  const parts = (text: Sql) => sql`string_to_array(regexp_replace(${text}, ${EMPTY_PARTS}, ''), '.')::bigint[]`
  const compared = (by: Comparison) =>
    sql`case when ${seen} ~ ${VERSION} then ${parts(seen)} ${operator(by)} ${parts(sql`${value}::text`)} end`
  return relation === '!=' ? sql`(${compared('=')} is not true)` : compared(relation)
}

/** Where the device was; where it says nothing, where the user was. */
function isWithin({ metres, lat, long }: Extract<Test, { kind: 'within' }>): Sql {
  const own = sql`s.lat is not null and s.long is not null`
  const [atLat, atLong] = [
    sql`case when ${own} then s.lat else u.lat end`,
    sql`case when ${own} then s.long else u.long end`,
  ]
  const half = (degrees: Sql, from: number) => sql`sin((${degrees} - ${from}::float8) * ${RADIANS}::float8 / 2)`
  return sql`power(${half(atLat, lat)}, 2) + ${Math.cos(lat * RADIANS)}::float8 * cos((${atLat}) * ${RADIANS}::float8)
    * power(${half(atLong, long)}, 2) <= ${reach(metres)}::float8`
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
