// Makes the content of a push message from its rendered texts, with the fields for the recipient's kind of device.

import type {
  AndroidContent,
  HuaweiContent,
  IosContent,
  PushButton,
  PushContent,
  WebContent,
} from '../../channels/push/content.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { ContentButton, ContentFields } from '../../templates/content.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import type { SentMessage } from '../deliver/store.ts'
import type { RenderedTexts } from '../engine/channel.ts'

type Device = 'ios' | 'android' | 'huawei' | 'fire' | 'windows' | 'web'

const DEVICES: Partial<Record<SubscriptionType, Device>> = {
  iOSPush: 'ios',
  macOSPush: 'ios',
  AndroidPush: 'android',
  HuaweiPush: 'huawei',
  FireOSPush: 'fire',
  WindowsPush: 'windows',
}
const deviceOf = (type: SubscriptionType): Device => DEVICES[type] ?? 'web'

export function pushContent(
  { id, content, options, templateId }: Pick<SentMessage, 'id' | 'content' | 'options' | 'templateId'>,
  texts: RenderedTexts,
  type: SubscriptionType,
  expiresAt: Date,
): PushContent {
  const common = {
    messageId: id,
    expiresAt,
    priority: options.priority,
    templateId: templateId ?? undefined,
    title: texts.headings,
    subtitle: texts.subtitle,
    body: texts.contents,
    data: content.data ?? undefined,
    collapseId: content.collapse_id ?? undefined,
    image: texts.global_image,
    confirmsReceipt: true,
  }
  const device = deviceOf(type)
  if (device === 'ios') return { ...common, ...iosContent(content, texts) }
  if (device === 'android') return { ...common, ...androidContent(content, texts, common.image) }
  if (device === 'huawei') return { ...common, ...huaweiContent(content, texts, common.image) }
  if (device === 'fire') return { ...common, ...fireContent(content, texts, common.image) }
  if (device === 'windows') return { ...common, ...windowsContent(content, texts) }
  return { ...common, ...webContent(content, texts, common.image, type) }
}

function iosContent(content: ContentFields, texts: RenderedTexts) {
  return {
    url: texts.app_url ?? texts.url,
    buttons: buttonsOf(content.buttons),
    sound: iosSound(content),
    group: content.thread_id ?? undefined,
    ios: {
      alert: alertOf(content, texts),
      summaryArg: content.summary_arg ?? undefined,
      summaryArgCount: content.summary_arg_count ?? undefined,
      badge: badgeOf(content),
      category: content.ios_category ?? undefined,
      interruptionLevel: levelOf(content),
      relevanceScore: content.ios_relevance_score ?? undefined,
      targetContentId: content.target_content_identifier ?? undefined,
      wakesApp: content.content_available ?? undefined,
      attachments: attachmentsOf(texts),
      isVoip: content.apns_push_type_override === 'voip' || undefined,
    } satisfies IosContent,
  }
}

/** As in the public API, a message plays the default sound unless it names a file; `nil` means silence. */
export const iosSound = ({ ios_sound: sound }: Pick<ContentFields, 'ios_sound'>): string | undefined =>
  sound === 'nil' ? undefined : sound || 'default'

/** The alert of the request, with its texts rendered. */
function alertOf({ apns_alert: alert }: ContentFields, texts: RenderedTexts): IosContent['alert'] {
  if (!alert) return undefined
  return Object.fromEntries(
    Object.entries(alert).map(([name, value]) => [name, ownProperty(texts, `apns_alert.${name}`) ?? value]),
  )
}

function badgeOf({ ios_badgeType: type, ios_badgeCount: count }: ContentFields): IosContent['badge'] {
  if (count === undefined || count === null) return undefined
  if (type === 'SetTo') return { set: count }
  return type === 'Increase' ? { increase: count } : undefined
}

const levelOf = ({ ios_interruption_level: level }: ContentFields): IosContent['interruptionLevel'] =>
  level === 'time_sensitive' ? 'time-sensitive' : (level ?? undefined)

const ATTACHMENT = 'ios_attachments.'

function attachmentsOf(texts: RenderedTexts): IosContent['attachments'] {
  const attachments = Object.entries(texts).filter(([field]) => field.startsWith(ATTACHMENT))
  if (attachments.length === 0) return undefined
  return Object.fromEntries(attachments.map(([field, url]) => [field.slice(ATTACHMENT.length), url]))
}

function androidContent(content: ContentFields, texts: RenderedTexts, image: string | undefined) {
  const layout = content.android_background_layout
  return {
    url: texts.app_url ?? texts.url,
    buttons: buttonsOf(content.buttons),
    icon: texts.large_icon,
    smallIcon: texts.small_icon,
    image: texts.big_picture ?? image,
    sound: content.android_sound ?? undefined,
    group: content.android_group ?? undefined,
    android: {
      channelId: content.existing_android_channel_id ?? content.android_channel_id ?? undefined,
      accentColor: colourOf(content.android_accent_color),
      ledColor: colourOf(content.android_led_color),
      visibility: content.android_visibility ?? undefined,
      groupMessage: texts.android_group_message,
      background: layout
        ? { image: layout.image, titleColor: layout.headings_color, bodyColor: layout.contents_color }
        : undefined,
    } satisfies AndroidContent,
  }
}

function huaweiContent(content: ContentFields, texts: RenderedTexts, image: string | undefined) {
  const { huawei_badge_class: badgeClass, huawei_badge_set_num: set, huawei_badge_add_num: add } = content
  const hasBadge = [badgeClass, set, add].some((value) => value !== undefined && value !== null)
  return {
    url: texts.app_url ?? texts.url,
    buttons: buttonsOf(content.buttons),
    icon: texts.huawei_large_icon,
    smallIcon: texts.huawei_small_icon,
    image: texts.huawei_big_picture ?? image,
    sound: content.huawei_sound ?? undefined,
    android: {
      channelId: content.huawei_existing_channel_id ?? content.huawei_channel_id ?? undefined,
      accentColor: colourOf(content.huawei_accent_color),
      ledColor: colourOf(content.huawei_led_color),
      visibility: content.huawei_visibility ?? undefined,
    } satisfies AndroidContent,
    huawei: {
      isDataMessage: content.huawei_msg_type === 'data',
      category: content.huawei_category ?? undefined,
      biTag: content.huawei_bi_tag ?? undefined,
      badge: hasBadge ? { class: badgeClass ?? undefined, set: set ?? undefined, add: add ?? undefined } : undefined,
    } satisfies HuaweiContent,
  }
}

const fireContent = (content: ContentFields, texts: RenderedTexts, image: string | undefined) => ({
  url: texts.app_url ?? texts.url,
  buttons: buttonsOf(content.buttons),
  icon: texts.adm_large_icon,
  smallIcon: texts.adm_small_icon,
  image: texts.adm_big_picture ?? image,
  sound: content.adm_sound ?? undefined,
  group: content.adm_group ?? undefined,
  android: { groupMessage: texts.adm_group_message } satisfies AndroidContent,
})

const windowsContent = (content: ContentFields, texts: RenderedTexts) => ({
  url: texts.app_url ?? texts.url,
  buttons: buttonsOf(content.buttons),
  sound: content.wp_wns_sound ?? undefined,
})

/** The SDK expects ARGB without `#`. */
function colourOf(colour: string | null | undefined): string | undefined {
  const digits = colour?.replace('#', '')
  return digits?.length === 6 ? `FF${digits}` : digits
}

function webContent(content: ContentFields, texts: RenderedTexts, image: string | undefined, type: SubscriptionType) {
  const topic = content.web_push_topic ?? content.collapse_id ?? undefined
  return {
    url: texts.web_url ?? texts.url,
    buttons: buttonsOf(content.web_buttons ?? content.buttons),
    icon: type === 'FirefoxPush' ? (texts.firefox_icon ?? texts.chrome_web_icon) : texts.chrome_web_icon,
    smallIcon: texts.chrome_web_badge,
    image: texts.chrome_web_image ?? image,
    collapseId: topic,
    web: { tag: topic } satisfies WebContent,
  }
}

const buttonsOf = (buttons: ContentButton[] | null | undefined): PushButton[] | undefined =>
  buttons?.map(({ id, text, icon, url }) => ({ id, text, icon: icon ?? undefined, url: url ?? undefined }))
