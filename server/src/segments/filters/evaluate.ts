// One subscription judged by a tree of conditions, clause by clause: what compile.ts says in SQL, for people to read.

import type { UserId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { EXTERNAL_ID } from '../../users/aliases/identity.ts'
import { isPushType, isReachable } from '../../users/subscriptions/reachable.ts'
import type { Subscription } from '../../users/subscriptions/subscription.ts'
import type { User } from '../../users/user.ts'
import { type Channel, type Clause, type Comparison, clausesOf, type Node, type Test } from './tree.ts'
import {
  compareVersions,
  haversine,
  hoursBefore,
  isVersion,
  lowerAscii,
  type Place,
  reach,
  secondsOf,
  unitsOf,
  upperAscii,
} from './values.ts'

/** A subscription, its user, and what only the database can count. */
export type Subject = {
  user: User
  subscription: Subscription
  /** What the user spent on an SKU, as a decimal; null for one never bought. */
  spentOn: (sku: string) => string | null
  countEvents: (name: string, days: number | undefined) => number
}

export type Value = string | number | boolean | null

export type Finding = { clause: Clause; matches: boolean; seen: Value }

export function matches(node: Node, subject: Subject, now: Date): boolean {
  switch (node.kind) {
    case 'clause':
      return judge(node, subject, now).matches
    case 'users':
      return node.ids.includes(subject.user.id as UserId)
    case 'channel':
      return channelOf(subject.subscription.type) === node.channel
    case 'all':
      return node.of.every((inner) => matches(inner, subject, now))
    case 'any':
      return node.of.some((inner) => matches(inner, subject, now))
    case 'none':
      return !node.of.some((inner) => matches(inner, subject, now))
  }
}

/** Each clause by itself, in the order it stands. */
export const findings = (node: Node, subject: Subject, now: Date): Finding[] =>
  [...clausesOf(node)].map((clause) => judge(clause, subject, now))

export function channelOf(type: Subscription['type']): Channel | undefined {
  if (type === 'Email') return 'email'
  if (type === 'SMS') return 'sms'
  return isPushType(type) ? 'push' : undefined
}

function judge(clause: Clause, subject: Subject, now: Date): Finding {
  const seen = seenBy(clause, subject)
  return { clause, seen, matches: holds(clause, seen, subject, now) }
}

/** The same for a clause on a tag, by the value of that tag alone; null: the user has none. */
export const tagMatches = (clause: Clause, value: string | null, now: Date): boolean =>
  holds(clause, value, undefined, now)

function seenBy({ field, key, test }: Clause, { user, subscription: it, spentOn, countEvents }: Subject): Value {
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
      const place = placeOf(user, it)
      return place && `${place.lat},${place.long}`
    }
    case 'event':
      return countEvents(key, test.kind === 'happened' ? test.days : undefined)
  }
}

function holds({ field, test }: Clause, seen: Value, subject: Subject | undefined, now: Date): boolean {
  switch (test.kind) {
    case 'present':
      return (seen !== null) === test.want
    case 'oneOf':
      return (seen !== null && test.values.includes(folded(field, String(seen)))) === test.want
    case 'is':
      return seen === test.want
    case 'number':
      return seen !== null && compareNumbers(unitsOf(String(seen)), test.relation, unitsOf(test.value))
    case 'version':
      return compareVersion(seen, test)
    case 'elapsed': {
      const at = seen === null ? undefined : unitsOf(String(seen))
      const elapsed = at === undefined ? undefined : (unitsOf(secondsOf(now)) as bigint) - at
      return compareNumbers(elapsed, test.relation, unitsOf(test.seconds))
    }
    case 'ago': {
      const [at, limit] = [Date.parse(String(seen)), hoursBefore(now, test.hours).getTime()]
      return test.relation === '>' ? at < limit : at > limit
    }
    case 'within': {
      const place = subject ? placeOf(subject.user, subject.subscription) : null
      return place !== null && haversine(test, place) <= reach(test.metres)
    }
    case 'happened':
      return compare(Number(seen) - test.count, test.relation)
  }
}

/** Languages and countries are the same in any case; everything else to the letter. */
function folded(field: Clause['field'], text: string): string {
  if (field === 'country') return upperAscii(text)
  return field === 'language' ? lowerAscii(text) : text
}

function compareNumbers(left: bigint | undefined, relation: Comparison, right: bigint | undefined): boolean {
  if (left === undefined || right === undefined) return false
  return compare(left < right ? -1 : left > right ? 1 : 0, relation)
}

function compareVersion(seen: Value, { relation, value }: Extract<Test, { kind: 'version' }>): boolean {
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

/** Where the device was; where it says nothing, where the user was. */
function placeOf({ properties }: User, { lat, long }: Subscription): Place | null {
  if (lat !== null && long !== null) return { lat, long }
  return properties.lat !== null && properties.long !== null ? { lat: properties.lat, long: properties.long } : null
}
