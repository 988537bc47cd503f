// When a subscription can be sent to, as a predicate and as SQL side by side: both must say the same.

import { type Sql, sql } from '../../storage/sql.ts'
import type { Subscription, SubscriptionType } from './subscription.ts'

/** `enabled` is null when the subscription no longer exists. */
type SubscribedState = { enabled: boolean | null; notificationTypes: number | null }

/** Enabled, and not unsubscribed. `null` is the initial state and counts as subscribed. */
export const isSubscribed = ({ enabled, notificationTypes }: SubscribedState) =>
  enabled === true && (notificationTypes ?? 1) > 0

/** `row` is the name of a row of subscriptions. */
export const subscribedSql = (row: Sql) => sql`(${row}.enabled and coalesce(${row}.notification_types, 1) > 0)`

/** Subscribed, and with a token to send to. */
export const isReachable = (subscription: Pick<Subscription, 'enabled' | 'notificationTypes' | 'token'>) =>
  isSubscribed(subscription) && subscription.token !== null

export const reachableSql = (row: Sql) => sql`(${subscribedSql(row)} and ${row}.token is not null)`

const TYPES_WITHOUT_PUSH: ReadonlySet<SubscriptionType> = new Set(['Email', 'SMS', 'WindowsPhonePush', 'AlexaPush'])

/** Web and mobile push. The types whose platforms are gone can still be named, but are never reachable. */
export const isPushType = (type: SubscriptionType) => !TYPES_WITHOUT_PUSH.has(type)

export const pushTypeSql = (row: Sql) =>
  sql`(${row}.type <> all(array['Email', 'SMS', 'WindowsPhonePush', 'AlexaPush']))`

export const isReachableByPush = (subscription: Subscription) =>
  isPushType(subscription.type) && isReachable(subscription)
