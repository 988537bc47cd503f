// What a subscription is: its types, when two tokens are the same, which addresses are valid, how it is answered.

import { hash } from 'node:crypto'
import { invalid } from '../../lib/errors.ts'
import type { AppId, SubscriptionId, UserId } from '../../lib/ids.ts'
import type { SubscriptionDraft, SubscriptionObject } from '../schema.ts'

/**
 * Canonical spellings. The last two are never delivered to: their platforms are gone, but legacy players still
 * register.
 */
export const subscriptionTypes = [
  'iOSPush',
  'AndroidPush',
  'FireOSPush',
  'ChromeExtensionPush',
  'ChromePush',
  'WindowsPush',
  'SafariLegacyPush',
  'FirefoxPush',
  'macOSPush',
  'HuaweiPush',
  'SafariPush',
  'Email',
  'SMS',
  'WindowsPhonePush',
  'AlexaPush',
] as const
export type SubscriptionType = (typeof subscriptionTypes)[number]

const byLowerCase = new Map(subscriptionTypes.map((type) => [type.toLowerCase(), type]))

/** The legacy API's numbers for the types. 12, 15 and 16 were never assigned. */
const deviceTypes: Record<number, SubscriptionType> = {
  0: 'iOSPush',
  1: 'AndroidPush',
  2: 'FireOSPush',
  3: 'WindowsPhonePush',
  4: 'ChromeExtensionPush',
  5: 'ChromePush',
  6: 'WindowsPush',
  7: 'SafariLegacyPush',
  8: 'FirefoxPush',
  9: 'macOSPush',
  10: 'AlexaPush',
  11: 'Email',
  13: 'HuaweiPush',
  14: 'SMS',
  17: 'SafariPush',
}
const deviceTypeOf = new Map(Object.entries(deviceTypes).map(([number, type]) => [type, Number(number)]))

export const typeOfDeviceNumber = (deviceType: number) => deviceTypes[deviceType]
export const deviceNumberOfType = (type: SubscriptionType) => deviceTypeOf.get(type) as number

/** A subscription as it is stored, joined with its activity. */
export type Subscription = {
  id: SubscriptionId
  userId: UserId
  type: SubscriptionType
  typeSpelling: string
  token: string | null
  tokenHash: string | null
  enabled: boolean
  notificationTypes: number | null
  sdk: string | null
  deviceModel: string | null
  deviceOs: string | null
  rooted: boolean | null
  testType: number | null
  appVersion: string | null
  netType: number | null
  carrier: string | null
  webAuth: string | null
  webP256: string | null
  language: string | null
  timezoneSeconds: number | null
  adId: string | null
  country: string | null
  lat: number | null
  long: number | null
  badgeCount: number | null
  /** For push subscriptions, if the SDK sent it. Never answered, because it proves that a caller is the device. */
  installId: string | null
  createdAt: string
  /** When the row last changed; every change has to set it. */
  updatedAt: string
  lastActive: string
  sessionCount: number
  sessionTime: number
}

/** Stored for a token that no longer leads anywhere: uninstalled, blocked, or replaced by another. */
export const RETIRED = -10

/** A push subscription that is no longer in use and is removed when a new one needs room. */
export const isRetired = ({ type, notificationTypes }: Subscription) =>
  !isAddressType(type) && notificationTypes === RETIRED

const addresses: ReadonlySet<SubscriptionType> = new Set(['Email', 'SMS'])

/**
 * Email addresses and phone numbers are known to many people, so knowing one proves nothing; a push token is known to
 * its device alone.
 */
export const isAddressType = (type: SubscriptionType) => addresses.has(type)

export type SubscriptionChange = Partial<Omit<Subscription, 'id' | 'userId' | 'createdAt' | 'updatedAt'>>

export function readSubscriptionType(given: string): SubscriptionType {
  const type = byLowerCase.get(given.toLowerCase())
  if (!type) throw invalid(`subscription type "${given}" is not one of ${subscriptionTypes.slice(0, 13).join(', ')}`)
  return type
}

const EMAIL =
  /^[^\s@<>()[\]\\,;:"\p{Cc}]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}\p{N}-]{2,63}$/u
const E164 = /^\+[1-9]\d{6,14}$/

export const isEmail = (text: string) => text.length <= 254 && EMAIL.test(text) && !/(^\.|\.\.|\.@)/.test(text)
export const isPhoneNumber = (text: string) => E164.test(text)

/** Refuses invalid addresses; push tokens are opaque. An empty push token means that there is none yet. */
export function readToken(type: SubscriptionType, token: string | null | undefined): string | null {
  if (type === 'Email' && !isEmail(token ?? '')) throw invalid(`"${token ?? ''}" is not a valid email address`)
  if (type === 'SMS' && !isPhoneNumber(token ?? ''))
    throw invalid(`"${token ?? ''}" is not a phone number in E.164 form, such as +15558675309`)
  return token ? token : null
}

/**
 * Two tokens with the same hash are the same endpoint: emails are case-insensitive, everything else is compared
 * exactly.
 */
export const hashToken = (type: SubscriptionType, token: string) =>
  hash('sha256', type === 'Email' ? token.toLowerCase() : token, 'hex')

/** The fields of a draft that may change, by their names on the wire and in the store. */
const changeable = new Map<string, keyof Subscription>(
  Object.entries({
    enabled: 'enabled',
    notification_types: 'notificationTypes',
    sdk: 'sdk',
    device_model: 'deviceModel',
    device_os: 'deviceOs',
    rooted: 'rooted',
    test_type: 'testType',
    app_version: 'appVersion',
    net_type: 'netType',
    carrier: 'carrier',
    web_auth: 'webAuth',
    web_p256: 'webP256',
    session_time: 'sessionTime',
    session_count: 'sessionCount',
  } as const satisfies Partial<Record<keyof SubscriptionDraft, keyof Subscription>>),
)

/** The fields that a draft sets; null means not given. */
export function readSubscriptionChange(draft: SubscriptionDraft): SubscriptionChange {
  const change: Record<string, unknown> = {}
  for (const given in draft) {
    const name = changeable.get(given)
    const value = draft[given as keyof SubscriptionDraft]
    if (name !== undefined && value !== null && value !== undefined) change[name] = value
  }
  return change
}

/** The legacy states "disabled through the API" and "unsubscribed" follow `enabled` when a change sets only that. */
export function withSubscribedState(change: SubscriptionChange, before?: Subscription): SubscriptionChange {
  if (change.enabled === undefined || change.notificationTypes !== undefined) return change
  const current = before?.notificationTypes ?? null
  if (!change.enabled && (current === null || current > 0)) return { ...change, notificationTypes: -31 }
  if (change.enabled && (current === -31 || current === -2)) return { ...change, notificationTypes: 1 }
  return change
}

/** What identifies a subscription. The hash is included because the lookup of the token has already computed it. */
export type SubscriptionEndpoint = Pick<Subscription, 'type' | 'token' | 'tokenHash'> & { spelling: string }

export function newSubscription(
  id: SubscriptionId,
  userId: UserId,
  { type, spelling, token, tokenHash }: SubscriptionEndpoint,
  now: string,
  change: SubscriptionChange,
): Subscription {
  return {
    id,
    userId,
    type,
    typeSpelling: spelling,
    token,
    tokenHash,
    enabled: true,
    notificationTypes: null,
    sdk: null,
    deviceModel: null,
    deviceOs: null,
    rooted: null,
    testType: null,
    appVersion: null,
    netType: null,
    carrier: null,
    webAuth: null,
    webP256: null,
    language: null,
    timezoneSeconds: null,
    adId: null,
    country: null,
    lat: null,
    long: null,
    badgeCount: null,
    installId: null,
    createdAt: now,
    updatedAt: now,
    lastActive: now,
    sessionCount: 0,
    sessionTime: 0,
    ...withSubscribedState(change),
  }
}

/** Unset fields have a neutral value, as the SDKs expect. */
export const subscriptionObject = (appId: AppId, it: Subscription): SubscriptionObject => ({
  id: it.id,
  app_id: appId,
  type: it.typeSpelling,
  token: it.token ?? '',
  enabled: it.enabled,
  notification_types: it.notificationTypes ?? (it.enabled ? 1 : -31),
  session_time: it.sessionTime,
  session_count: it.sessionCount,
  sdk: it.sdk ?? '',
  device_model: it.deviceModel ?? '',
  device_os: it.deviceOs ?? '',
  rooted: it.rooted ?? false,
  test_type: it.testType ?? 0,
  app_version: it.appVersion ?? '',
  net_type: it.netType ?? 0,
  carrier: it.carrier ?? '',
  web_auth: it.webAuth ?? '',
  web_p256: it.webP256 ?? '',
})
