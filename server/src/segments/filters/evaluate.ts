// Evaluates a filter tree for one subscription, clause by clause. compile.ts implements the same semantics in SQL; this
// version can explain its result to people.

import type { UserId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { EXTERNAL_ID } from '../../users/aliases/identity.ts'
import { isPushType, isReachable } from '../../users/subscriptions/reachable.ts'
import type { Subscription } from '../../users/subscriptions/subscription.ts'
import type { User } from '../../users/user.ts'
import {
  type AudienceChannel,
  type ClauseTest,
  type Comparison,
  clausesOf,
  type FilterClause,
  type FilterNode,
} from './tree.ts'
import {
  compareVersions,
  type GeoPoint,
  haversine,
  haversineOfDistance,
  hoursBefore,
  isVersion,
  lowerAscii,
  toUnits,
  toUnixSeconds,
  upperAscii,
} from './values.ts'

/** A subscription, its user, and aggregates that only the database can compute. */
export type FilterSubject = {
  user: User
  subscription: Subscription
  /** What the user spent on an SKU, as a decimal; null when it was never bought. */
  spentOn: (sku: string) => string | null
  countEvents: (name: string, days: number | undefined) => number
}

export type ObservedValue = string | number | boolean | null

export type ClauseResult = { clause: FilterClause; matches: boolean; value: ObservedValue }

export function matchesFilter(node: FilterNode, subject: FilterSubject, now: Date): boolean {
  switch (node.kind) {
    case 'clause':
      return evaluateClause(node, subject, now).matches
    case 'users':
      return node.ids.includes(subject.user.id as UserId)
    case 'channel':
      return channelOfType(subject.subscription.type) === node.channel
    case 'all':
      return node.of.every((inner) => matchesFilter(inner, subject, now))
    case 'any':
      return node.of.some((inner) => matchesFilter(inner, subject, now))
    case 'none':
      return !node.of.some((inner) => matchesFilter(inner, subject, now))
  }
}

/** Evaluates each clause separately, in the order of the filters. */
export const evaluateClauses = (node: FilterNode, subject: FilterSubject, now: Date): ClauseResult[] =>
  [...clausesOf(node)].map((clause) => evaluateClause(clause, subject, now))

export function channelOfType(type: Subscription['type']): AudienceChannel | undefined {
  if (type === 'Email') return 'email'
  if (type === 'SMS') return 'sms'
  return isPushType(type) ? 'push' : undefined
}

function evaluateClause(clause: FilterClause, subject: FilterSubject, now: Date): ClauseResult {
  const seen = observe(clause, subject)
  return { clause, value: seen, matches: passesTest(clause, seen, subject, now) }
}

/** Evaluates a clause on a tag by the value of that tag alone. Null means that the user does not have the tag. */
export const matchesTag = (clause: FilterClause, value: string | null, now: Date): boolean =>
  passesTest(clause, value, undefined, now)

function observe(
  { field, key, test }: FilterClause,
  { user, subscription: it, spentOn, countEvents }: FilterSubject,
): ObservedValue {
  const { properties, aliases } = user
  switch (field) {
    case 'tag':
      return ownProperty(properties.tags, key) ?? null
    case 'country':
      return it.country ?? properties.country
    case 'language':
      return it.language ?? properties.language
    case 'external_user_id':
      return aliases.get(EXTERNAL_ID) ?? null
    case 'device_type':
      return it.type
    case 'app_version':
      return it.appVersion
    case 'session_count':
      return String(it.sessionCount)
    case 'session_time':
      return String(it.sessionTime)
    case 'last_session':
      return it.lastActive
    case 'first_session':
      return it.createdAt
    case 'amount_spent':
      return properties.amountSpent
    case 'bought_sku':
      return spentOn(key)
    case 'rooted':
      return it.rooted ?? false
    case 'test_users':
      return properties.testUserName !== null
    case 'subscribed':
      return isReachable(it)
    case 'email':
      return [...user.subscriptions.values()].some((own) => own.type === 'Email' && own.tokenHash === key)
    case 'location': {
      const place = locationOf(user, it)
      return place && `${place.lat},${place.long}`
    }
    case 'event':
      return countEvents(key, test.kind === 'happened' ? test.days : undefined)
  }
}

function passesTest(
  { field, test }: FilterClause,
  seen: ObservedValue,
  subject: FilterSubject | undefined,
  now: Date,
): boolean {
  switch (test.kind) {
    case 'present':
      return (seen !== null) === test.want
    case 'oneOf':
      return (seen !== null && test.values.includes(foldCase(field, String(seen)))) === test.want
    case 'is':
      return seen === test.want
    case 'number':
      return seen !== null && compareNumbers(toUnits(String(seen)), test.relation, toUnits(test.value))
    case 'version':
      return compareVersion(seen, test)
    case 'elapsed': {
      const at = seen === null ? undefined : toUnits(String(seen))
      const elapsed = at === undefined ? undefined : (toUnits(toUnixSeconds(now)) as bigint) - at
      return compareNumbers(elapsed, test.relation, toUnits(test.seconds))
    }
    case 'ago': {
      const [at, limit] = [Date.parse(String(seen)), hoursBefore(now, test.hours).getTime()]
      return test.relation === '>' ? at < limit : at > limit
    }
    case 'within': {
      const place = subject ? locationOf(subject.user, subject.subscription) : null
      return place !== null && haversine(test, place) <= haversineOfDistance(test.metres)
    }
    case 'happened':
      return compare(Number(seen) - test.count, test.relation)
  }
}

/** Languages and countries ignore case; everything else is compared exactly. */
function foldCase(field: FilterClause['field'], text: string): string {
  if (field === 'country') return upperAscii(text)
  return field === 'language' ? lowerAscii(text) : text
}

function compareNumbers(left: bigint | undefined, relation: Comparison, right: bigint | undefined): boolean {
  if (left === undefined || right === undefined) return false
  return compare(left < right ? -1 : left > right ? 1 : 0, relation)
}

function compareVersion(seen: ObservedValue, { relation, value }: Extract<ClauseTest, { kind: 'version' }>): boolean {
  if (typeof seen !== 'string' || !isVersion(seen)) return relation === '!='
  return compare(compareVersions(seen, value), relation)
}

function compare(sign: number, relation: Comparison): boolean {
  switch (relation) {
    case '>':
      return sign > 0
    case '<':
      return sign < 0
    case '=':
      return sign === 0
    case '!=':
      return sign !== 0
    case '>=':
      return sign >= 0
    case '<=':
      return sign <= 0
  }
}

/** Uses the location of the device, or else that of the user. */
function locationOf({ properties }: User, { lat, long }: Subscription): GeoPoint | null {
  if (lat !== null && long !== null) return { lat, long }
  return properties.lat !== null && properties.long !== null ? { lat: properties.lat, long: properties.long } : null
}
