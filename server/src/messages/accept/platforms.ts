// Which types of subscription a push goes to.

import { invalid } from '../../lib/errors.ts'
import { type ContentChannel, type ContentFields, hasAny, PLATFORMS } from '../../templates/content.ts'
import { isPushType } from '../../users/subscriptions/reachable.ts'
import { type SubscriptionType, subscriptionTypes } from '../../users/subscriptions/subscription.ts'

const WEB: readonly SubscriptionType[] = ['ChromePush', 'FirefoxPush', 'SafariPush', 'SafariLegacyPush']

/** Chrome-like browsers, Edge among them, are one type. */
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

/** One that is named turns off the others; where none is, those said no to are left out. Undefined means all. */
export function readPlatforms(content: ContentFields): SubscriptionType[] | undefined {
  if (!hasAny(content, platformFields)) return undefined
  const named = PLATFORMS.filter((name) => content[name] === true).flatMap((name) => typesOf[name])
  if (named.length > 0) return [...new Set(named)]
  const refused = PLATFORMS.filter((name) => content[name] === false)
  if (refused.length === 0) return undefined
  const out = new Set(refused.flatMap((name) => typesOf[name]))
  const left = PUSH.filter((type) => !out.has(type))
  if (left.length === 0) throw invalid(`No platform is left to send to: ${refused.join(', ')} are all false`)
  return left
}

export function subscriptionTypesFor(
  channel: ContentChannel,
  platforms: readonly string[] | undefined,
): readonly string[] {
  if (channel === 'email') return ['Email']
  if (channel === 'sms') return ['SMS']
  return platforms ? PUSH.filter((type) => platforms.includes(type)) : PUSH
}

/** For every platform, whether the message goes there. */
export const platformFlags = (channel: ContentChannel, platforms: readonly string[] | undefined) =>
  Object.fromEntries(
    PLATFORMS.map((name) => [
      name,
      channel === 'push' && (platforms === undefined || typesOf[name].some((type) => platforms.includes(type))),
    ]),
  )
