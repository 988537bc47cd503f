// Converts users and subscriptions between rows and values.

import { EXTERNAL_ID } from './aliases/identity.ts'
import { columnsFromRow, columnsToWire } from './properties/columns.ts'
import type { StoredPurchase } from './properties/stored.ts'
import { isReachable, isReachableByPush } from './subscriptions/reachable.ts'
import type { Subscription } from './subscriptions/subscription.ts'
import type { User } from './user.ts'

export type UserRow = ReturnType<typeof userRow>

export const userRow = ({ id, properties }: User) => ({
  id,
  tags: properties.tags,
  ...columnsToWire(properties),
  first_active: properties.firstActive,
  amount_spent: properties.amountSpent,
})

/** The limit is on custom aliases; external_id does not count. */
export const countCustom = (aliases: ReadonlyMap<string, string>) => aliases.size - (aliases.has(EXTERNAL_ID) ? 1 : 0)

export type LoadedUser = UserRow & {
  created_at: string
  activity: { last_active: string; session_count: number; session_time: number } | null
  aliases: Record<string, string> | null
  subscriptions: LoadedSubscription[] | null
  purchases: StoredPurchase[] | null
}

const iso = (time: string) => new Date(time).toISOString()

export function userOf(it: LoadedUser): User {
  return {
    id: it.id,
    createdAt: iso(it.created_at),
    properties: {
      tags: it.tags,
      ...columnsFromRow(it),
      firstActive: iso(it.first_active),
      lastActive: iso(it.activity?.last_active ?? it.created_at),
      amountSpent: it.amount_spent,
      sessionCount: it.activity?.session_count ?? 0,
      sessionTime: it.activity?.session_time ?? 0,
      purchases: it.purchases ?? [],
    },
    aliases: new Map(Object.entries(it.aliases ?? {})),
    subscriptions: new Map((it.subscriptions ?? []).map(subscriptionOf).map((owned) => [owned.id, owned])),
  }
}

type LoadedSubscription = Record<string, unknown> & Pick<LoadedUser, 'activity'>

const subscriptionOf = (it: LoadedSubscription): Subscription => ({
  id: it.id as string,
  userId: it.user_id as string,
  type: it.type as Subscription['type'],
  typeSpelling: it.type_spelling as string,
  token: it.token as string | null,
  tokenHash: it.token_hash as string | null,
  enabled: it.enabled as boolean,
  notificationTypes: it.notification_types as number | null,
  sdk: it.sdk as string | null,
  deviceModel: it.device_model as string | null,
  deviceOs: it.device_os as string | null,
  rooted: it.rooted as boolean | null,
  testType: it.test_type as number | null,
  appVersion: it.app_version as string | null,
  netType: it.net_type as number | null,
  carrier: it.carrier as string | null,
  webAuth: it.web_auth as string | null,
  webP256: it.web_p256 as string | null,
  language: it.language as string | null,
  timezoneSeconds: it.timezone_seconds as number | null,
  adId: it.ad_id as string | null,
  country: it.country as string | null,
  lat: it.lat as number | null,
  long: it.long as number | null,
  badgeCount: it.badge_count as number | null,
  installId: it.install_id as string | null,
  createdAt: iso(it.created_at as string),
  updatedAt: iso(it.updated_at as string),
  lastActive: iso(it.activity?.last_active ?? (it.created_at as string)),
  sessionCount: it.activity?.session_count ?? 0,
  sessionTime: it.activity?.session_time ?? 0,
})

export const subscriptionRow = (it: Subscription) => ({
  id: it.id,
  user_id: it.userId,
  type: it.type,
  type_spelling: it.typeSpelling,
  token: it.token,
  token_hash: it.tokenHash,
  enabled: it.enabled,
  notification_types: it.notificationTypes,
  sdk: it.sdk,
  device_model: it.deviceModel,
  device_os: it.deviceOs,
  rooted: it.rooted,
  test_type: it.testType,
  app_version: it.appVersion,
  net_type: it.netType,
  carrier: it.carrier,
  web_auth: it.webAuth,
  web_p256: it.webP256,
  language: it.language,
  timezone_seconds: it.timezoneSeconds,
  ad_id: it.adId,
  country: it.country,
  lat: it.lat,
  long: it.long,
  badge_count: it.badgeCount,
  install_id: it.installId,
  created_at: it.createdAt,
  updated_at: it.updatedAt,
})

export const activityRow = (id: string, it: { lastActive: string; sessionCount: number; sessionTime: number }) => ({
  id,
  last_active: it.lastActive,
  session_count: it.sessionCount,
  session_time: it.sessionTime,
})

/** Leaves out null fields: the row travels as JSON, and most fields of a new row are null. */
function sparse<Row extends object>(row: Row): Partial<Row> {
  const out: Partial<Row> = {}
  for (const key in row) if (row[key] !== null) out[key] = row[key]
  return out
}

export const freshUserRow = (user: User) =>
  sparse({
    ...userRow(user),
    alias_count: countCustom(user.aliases),
    subscription_count: user.subscriptions.size,
    ...countReachable(user.subscriptions.values()),
    at: user.createdAt,
  })

/** What is counted of an app's subscriptions besides their number. */
export function countReachable(subscriptions: Iterable<Subscription>) {
  let subscribed = 0
  let messageable = 0
  for (const it of subscriptions) {
    if (isReachable(it)) subscribed++
    if (isReachableByPush(it)) messageable++
  }
  return { subscribed, messageable }
}

export function freshSubscriptionRow(it: Subscription) {
  const { created_at, updated_at, ...row } = subscriptionRow(it)
  return sparse({ ...row, at: created_at })
}
