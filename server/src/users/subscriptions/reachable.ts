// When a subscription can be sent to, as a predicate and as SQL side by side: both must say the same.

import { type Sql, sql } from '../../storage/sql.ts'
import type { Subscription, SubscriptionType } from './subscription.ts'

/** `enabled` is null where there is no subscription any more. */
type SubscribedState = { enabled: boolean | null; notificationTypes: number | null }

/** Switched on, and not unsubscribed. `null` is how a subscription begins, and counts as subscribed. */
export const isSubscribed = ({ enabled, notificationTypes }: SubscribedState) =>
  enabled === true && (notificationTypes ?? 1) > 0

/** `row` is the name of a row of subscriptions. */
export const subscribedSql = (row: Sql) => sql`(${row}.enabled and coalesce(${row}.notification_types, 1) > 0)`

/** Subscribed, with somewhere to send to. */
export const isReachable = (subscription: Pick<Subscription, 'enabled' | 'notificationTypes' | 'token'>) =>
  isSubscribed(subscription) && subscription.token !== null

export const reachableSql = (row: Sql) => sql`(${subscribedSql(row)} and ${row}.token is not null)`

const TYPES_WITHOUT_PUSH: ReadonlySet<SubscriptionType> = new Set(['Email', 'SMS', 'WindowsPhonePush', 'AlexaPush'])

/** Web and mobile push; the platforms whose services are gone can be named, and are reached by nobody. */
export const isPushType = (type: SubscriptionType) => !TYPES_WITHOUT_PUSH.has(type)

export const pushTypeSql = (row: Sql) =>
  sql`(${row}.type <> all(array['Email', 'SMS', 'WindowsPhonePush', 'AlexaPush']))`

export const isReachableByPush = (subscription: Subscription) =>
  isPushType(subscription.type) && isReachable(subscription)
