// The payloads for Huawei's devices. The system shows a notification message, even while the app is stopped. A data
// message goes to the SDK, which shows it like a data message of Google.

import { ownProperty } from '../../../lib/own-property.ts'
import { sha256 } from '../../../lib/secrets.ts'
import { compact, nearestPriority, type PushContent, secondsLeft } from '../content.ts'
import { writeAndroidData } from '../fcm/android-data.ts'
import type { HuaweiCredentials } from './credentials.ts'

export type HuaweiPush = {
  /** Without the parts that depend on the app: the title, and where a tap leads. */
  notification: Readonly<Record<string, unknown>> | undefined
  title: string | undefined
  url: string | undefined
  buttons: PushContent['buttons']
  /** Fields for the SDK: part of a data message, or of the intent that a tap starts. */
  data: Readonly<Record<string, string>>
  android: Readonly<Record<string, unknown>>
  expiresAt: Date
}

/** Called once for all recipients of the same content. */
export function writeHuaweiPush(content: PushContent): HuaweiPush {
  const { title, body, huawei = {}, collapseId } = content
  const isNotification = !huawei.isDataMessage && (title !== undefined || body !== undefined)
  return {
    notification: isNotification ? notificationOf(content) : undefined,
    title,
    url: content.url,
    buttons: content.buttons,
    data: writeAndroidData(content),
    android: compact({
      // High priority for data messages requires a separate permission, which few apps have.
      urgency: isNotification && nearestPriority(content.priority, [5, 10]) === 10 ? 'HIGH' : 'NORMAL',
      category: huawei.category ?? 'MARKETING',
      bi_tag: huawei.biTag,
      collapse_key: collapseId === undefined ? undefined : collapseKey(collapseId),
    }),
    expiresAt: content.expiresAt,
  }
}

/** For a device that is off, Huawei keeps the last message of each group. There are 100 groups. */
const collapseKey = (collapseId: string) => 1 + (sha256(collapseId).readUInt32BE(0) % 100)

const VISIBILITY: Readonly<Record<number, string>> = { 1: 'PUBLIC', 0: 'PRIVATE', [-1]: 'SECRET' }
const SILENT = 'nil'
const isWebAddress = (text: string | undefined) => text !== undefined && /^https:\/\//i.test(text)

function notificationOf(content: PushContent): Record<string, unknown> {
  const { body, title, icon, smallIcon, image, sound, collapseId, android = {}, huawei = {} } = content
  const { accentColor, ledColor, visibility, channelId } = android
  const picture = isWebAddress(image) ? image : undefined
  return compact({
    body: body ?? title,
    icon: smallIcon === undefined || isWebAddress(smallIcon) ? undefined : rawFile(smallIcon),
    image: isWebAddress(icon) ? icon : undefined,
    style: picture ? 2 : undefined,
    big_picture: picture,
    color: accentColor && `#${accentColor.slice(-6)}`,
    sound: sound === undefined || sound === SILENT ? undefined : rawFile(sound),
    default_sound: sound === undefined,
    channel_id: channelId,
    visibility: visibility === undefined ? undefined : VISIBILITY[visibility],
    light_settings: ledColor && lightOf(ledColor),
    badge: huawei.badge && compact({ class: huawei.badge.class, set_num: huawei.badge.set, add_num: huawei.badge.add }),
    tag: collapseId,
  })
}

/** A file that is part of the app. */
const rawFile = (name: string) => (name.startsWith('/') ? name : `/raw/${name}`)

/** Parses ARGB in hex. */
function lightOf(argb: string) {
  const [alpha = 1, red = 1, green = 1, blue = 1] = [0, 2, 4, 6].map(
    (at) => Math.round((Number.parseInt(argb.slice(at, at + 2), 16) / 255) * 1000) / 1000,
  )
  return { color: { alpha, red, green, blue }, light_on_duration: '1s', light_off_duration: '1s' }
}

/** The whole message without the token. */
export function writeHuaweiMessage(
  push: HuaweiPush,
  credentials: HuaweiCredentials,
  now: Date,
): Record<string, unknown> {
  const { notification, data, android } = push
  const ttl = `${Math.max(1, Math.min(secondsLeft(push.expiresAt, now), LONGEST_TTL_SECONDS))}s`
  if (!notification) return { data: JSON.stringify(data), android: { ...android, ttl } }
  const title = push.title ?? credentials.defaultTitle
  const click_action = clickAction(push, credentials)
  const buttons = push.buttons?.map(({ id, text }) => ({ name: text, ...buttonAction(id, push, credentials) }))
  return { android: { ...android, ttl, notification: compact({ ...notification, title, click_action, buttons }) } }
}

/** Huawei stores no message for longer. */
const LONGEST_TTL_SECONDS = 15 * 86_400

function clickAction({ data, url }: HuaweiPush, { packageName }: HuaweiCredentials): Record<string, unknown> {
  if (packageName !== undefined) return { type: 1, intent: intentFor(packageName, data) }
  return isWebAddress(url) ? { type: 2, url } : { type: 3 }
}

/** If the SDK cannot be started, a button opens the app. */
function buttonAction(id: string, { data }: HuaweiPush, { packageName }: HuaweiCredentials): Record<string, unknown> {
  if (packageName === undefined) return { action_type: 0 }
  const custom = JSON.stringify({ ...JSON.parse(data.custom ?? '{}'), actionId: id })
  return { action_type: 1, intent_type: 0, intent: intentFor(packageName, { ...data, custom }) }
}

const SDK_ACTIVITY = 'com.onesignal.NotificationOpenedActivityHMS'
/** No history, a new task, multiple tasks: the SDK decides whether the app comes to the foreground. */
const LAUNCH_FLAGS = '0x58000000'

/** The intent contains what the SDK needs to report the tap and to open the URL. */
function intentFor(packageName: string, data: HuaweiPush['data']): string {
  const extras = ['custom', 'title', 'alert'].flatMap((name) => {
    const value = ownProperty(data, name)
    return value === undefined ? [] : [`S.${name}=${encodeURIComponent(value.toWellFormed())}`]
  })
  const component = `component=${packageName}/${SDK_ACTIVITY}`
  return `#Intent;launchFlags=${LAUNCH_FLAGS};${component};${extras.join(';')};end`
}
