// Decides which types of subscription a message goes to, and through which lane.

import { invalid } from '../../lib/errors.ts'
import { type ContentChannel, type ContentFields, hasAny, PLATFORMS } from '../../templates/content.ts'
import { isPushType } from '../../users/subscriptions/reachable.ts'
import { type SubscriptionType, subscriptionTypes } from '../../users/subscriptions/subscription.ts'
import type { JobLane } from '../message.ts'

const WEB: readonly SubscriptionType[] = ['ChromePush', 'FirefoxPush', 'SafariPush', 'SafariLegacyPush']

/** All Chromium browsers, including Edge, share one type. */
const typesOf: Record<(typeof PLATFORMS)[number], readonly SubscriptionType[]> = {
  isAndroid: ['AndroidPush'],
  isIos: ['iOSPush'],
  isMacOSX: ['macOSPush'],
  isAdm: ['FireOSPush'],
  isAlexa: ['AlexaPush'],
  isWP: ['WindowsPhonePush'],
  isWP_WNS: ['WindowsPush'],
  isChrome: ['ChromeExtensionPush'],
  isChromeWeb: ['ChromePush'],
  isSafari: ['SafariPush', 'SafariLegacyPush'],
  isFirefox: ['FirefoxPush'],
  isEdge: ['ChromePush'],
  isHuawei: ['HuaweiPush'],
  isAnyWeb: WEB,
}

const PUSH = subscriptionTypes.filter(isPushType)

const platformFields: ReadonlySet<string> = new Set(PLATFORMS)

export const namesPlatform = (content: ContentFields) =>
  hasAny(content, platformFields) && PLATFORMS.some((name) => content[name] === true)

/**
 * Naming a platform excludes all others. If none is named, those set to false are left out. Undefined means all
 * platforms.
 */
export function readPlatforms(content: ContentFields): SubscriptionType[] | undefined {
  if (!hasAny(content, platformFields)) return undefined
  const named = PLATFORMS.filter((name) => content[name] === true).flatMap((name) => typesOf[name])
  if (named.length > 0) return [...new Set(named)]
  const excludedNames = PLATFORMS.filter((name) => content[name] === false)
  if (excludedNames.length === 0) return undefined
  const excluded = new Set(excludedNames.flatMap((name) => typesOf[name]))
  const remaining = PUSH.filter((type) => !excluded.has(type))
  if (remaining.length === 0) throw invalid(`No platform is left to send to: ${excludedNames.join(', ')} are all false`)
  return remaining
}

/** Messages that name more recipients than this go through the bulk lane. */
const MAX_DIRECT_TARGETS = 100

export const laneFor = (targets: readonly unknown[] | undefined): JobLane =>
  targets !== undefined && targets.length <= MAX_DIRECT_TARGETS ? 'direct' : 'bulk'

export function subscriptionTypesFor(
  channel: ContentChannel,
  platforms: readonly string[] | undefined,
): readonly string[] {
  if (channel === 'email') return ['Email']
  if (channel === 'sms') return ['SMS']
  return platforms ? PUSH.filter((type) => platforms.includes(type)) : PUSH
}

/** For each platform, says whether the message goes there. */
export const platformFlags = (channel: ContentChannel, platforms: readonly string[] | undefined) =>
  Object.fromEntries(
    PLATFORMS.map((name) => [
      name,
      channel === 'push' && (platforms === undefined || typesOf[name].some((type) => platforms.includes(type))),
    ]),
  )
