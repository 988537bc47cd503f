// The content of a message and its presentation, on every channel: the wire shape that templates and messages share.
// check-content.ts checks what the schema cannot express.

import Type, { type Static } from 'typebox'
import { ownProperty } from '../lib/own-property.ts'
import type { ByLanguage } from './language.ts'

/** Clients send null for fields that they leave out. In an update, null removes a field. */
const orNull = <Value>(type: string, options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))
const text = (maxLength: number, description?: string) =>
  orNull<string>('string', { maxLength, ...(description && { description }) })
const flag = (description?: string) => orNull<boolean>('boolean', description ? { description } : {})
const integer = (minimum: number, maximum: number) => orNull<number>('integer', { minimum, maximum })
const oneOf = <Value extends string | number>(...values: Value[]) =>
  Type.Optional(Type.Unsafe<Value | null>({ enum: [...values, null] }))
const list = <Value>(items: object, maxItems: number, description?: string) =>
  orNull<Value[]>('array', { items, maxItems, ...(description && { description }) })
const mapOf = <Value>(values: object, description?: string) =>
  orNull<Record<string, Value>>('object', { additionalProperties: values, ...(description && { description }) })
const languages = (maxLength: number) =>
  mapOf<string>(
    { type: 'string', maxLength },
    'Texts by language code; `en` is what everybody else gets. May hold Liquid.',
  )
/** One text for everybody, or texts by language. */
const textOrLanguages = (maxLength: number, description: string) =>
  Type.Optional(
    Type.Unsafe<ByLanguage | null>({
      type: ['string', 'object', 'null'],
      maxLength,
      additionalProperties: { type: 'string', maxLength },
      description,
    }),
  )
const BY_LANGUAGE = 'Ours: also texts by language code, of which `en` is what everybody else gets.'
const groupMessage = () =>
  textOrLanguages(2_000, 'Shown for a group of messages: one text, or texts by language code. May hold Liquid.')
const colour = () => orNull<string>('string', { pattern: '^#?([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$' })
/** A web address, or the name of an image bundled with the app. */
const url = () => text(2_048)
const required = (fields: Record<string, object>, names: string[]) => ({
  type: 'object',
  properties: fields,
  required: names,
})
const short = { type: 'string', minLength: 1, maxLength: 128 }
const optionalName = { type: ['string', 'null'], maxLength: 255 }
const optionalShort = { type: ['string', 'null'], maxLength: 2_048 }

export type ContentButton = { id: string; text: string; icon?: string | null; url?: string | null }

/** A file of an email that the server fetches when it sends. */
export type ContentAttachment = { url: string; filename?: string | null; content_type?: string | null }

/** The platforms that a push message goes to. When none is given, it goes to all. */
export const PLATFORMS = [
  'isAndroid',
  'isIos',
  'isMacOSX',
  'isAdm',
  'isAlexa',
  'isWP',
  'isWP_WNS',
  'isChrome',
  'isChromeWeb',
  'isSafari',
  'isFirefox',
  'isEdge',
  'isHuawei',
  'isAnyWeb',
] as const

const platforms = Object.fromEntries(PLATFORMS.map((name) => [name, flag()])) as Record<
  (typeof PLATFORMS)[number],
  ReturnType<typeof flag>
>

const android = <Prefix extends string>(prefix: Prefix) =>
  ({
    [`${prefix}channel_id`]: text(128),
    [`${prefix}accent_color`]: colour(),
    [`${prefix}led_color`]: colour(),
    [`${prefix}visibility`]: integer(-1, 1),
    [`${prefix}sound`]: text(128),
  }) as Record<`${Prefix}${'channel_id' | 'accent_color' | 'led_color' | 'sound'}`, ReturnType<typeof text>> &
    Record<`${Prefix}visibility`, ReturnType<typeof integer>>

export const contentFields = {
  contents: languages(10_000),
  headings: languages(2_000),
  subtitle: languages(2_000),
  ...platforms,
  isEmail: flag('An email.'),
  isSMS: flag('A text message.'),
  isSms: flag('The same as `isSMS`.'),

  url: url(),
  web_url: url(),
  app_url: url(),
  data: orNull<Record<string, unknown>>('object', { description: 'At most 2,048 bytes; without Liquid.' }),
  global_image: url(),
  buttons: list<ContentButton>(required({ id: short, text: short, icon: optionalShort }, ['id', 'text']), 3),
  web_buttons: list<ContentButton>(
    required({ id: short, text: short, url: optionalShort, icon: optionalShort }, ['id', 'text']),
    2,
  ),
  collapse_id: text(64),
  web_push_topic: text(64),
  ttl: integer(0, 2_419_200),
  priority: integer(1, 10),

  email_subject: textOrLanguages(2_000, `May hold Liquid. ${BY_LANGUAGE}`),
  email_body: textOrLanguages(500_000, 'HTML or MJML, with Liquid. Values are escaped; `| raw` puts one in as it is.'),
  email_preheader: textOrLanguages(2_000, `Shown beside the subject. May hold Liquid. ${BY_LANGUAGE}`),
  email_from_name: text(128),
  email_from_address: text(254),
  email_sender_domain: text(253),
  email_reply_to_address: text(1_000),
  email_bcc: list<string>({ type: 'string' }, 5, 'Email addresses.'),
  email_attachments: list<ContentAttachment>(
    required(
      { url: { type: 'string', minLength: 1, maxLength: 2_048 }, filename: optionalName, content_type: optionalName },
      ['url'],
    ),
    10,
    'Ours: files that the server fetches when it sends the mail, where its operator allows it. Without Liquid.',
  ),
  include_unsubscribed: flag(),
  disable_email_click_tracking: flag(),
  disable_email_open_tracking: flag(),

  sms_from: text(16, 'E.164.'),
  sms_media_urls: list<string>({ type: 'string', maxLength: 2_048 }, 10),

  ios_attachments: mapOf<string>({ type: 'string', maxLength: 2_048 }),
  ios_sound: text(128, 'A sound file of the app. Defaults to `default`; `nil` means no sound.'),
  ios_badgeType: oneOf('None', 'SetTo', 'Increase'),
  ios_badgeCount: integer(-2_147_483_648, 2_147_483_647),
  ios_category: text(128),
  ios_interruption_level: oneOf('active', 'passive', 'time_sensitive', 'time-sensitive', 'critical'),
  ios_relevance_score: orNull<number>('number', { minimum: 0, maximum: 1 }),
  thread_id: text(128),
  summary_arg: text(128, 'The `summary-arg` of the alert.'),
  summary_arg_count: integer(0, 1_000_000),
  content_available: flag(),
  mutable_content: flag(),
  target_content_identifier: text(256),
  apns_alert: orNull<Record<string, unknown>>('object', {
    description:
      'Keys of the alert in the words of Apple, such as `loc-key` and `loc-args`. Headings, subtitle and contents go before its title, subtitle and body. Texts may hold Liquid; lists are sent as they are.',
  }),
  apns_push_type_override: oneOf('voip'),

  android_channel_id: text(128),
  existing_android_channel_id: text(128),
  small_icon: url(),
  large_icon: url(),
  big_picture: url(),
  android_accent_color: colour(),
  android_led_color: colour(),
  android_visibility: integer(-1, 1),
  android_sound: text(128),
  android_group: text(128),
  android_group_message: groupMessage(),
  android_background_layout: mapOf<string>({ type: 'string', maxLength: 2_048 }),

  ...android('huawei_'),
  huawei_existing_channel_id: text(128),
  huawei_small_icon: url(),
  huawei_large_icon: url(),
  huawei_big_picture: url(),
  huawei_msg_type: oneOf('message', 'data'),
  huawei_category: oneOf(
    ...(['IM', 'VOIP', 'SUBSCRIPTION', 'TRAVEL', 'HEALTH', 'WORK', 'ACCOUNT', 'EXPRESS', 'FINANCE'] as const),
    ...(['DEVICE_REMINDER', 'MAIL', 'MARKETING'] as const),
  ),
  huawei_bi_tag: text(128),
  huawei_badge_class: text(256),
  huawei_badge_set_num: integer(0, 99),
  huawei_badge_add_num: integer(1, 99),
  adm_big_picture: url(),
  adm_small_icon: url(),
  adm_large_icon: url(),
  adm_sound: text(128),
  adm_group: text(128),
  adm_group_message: groupMessage(),

  chrome_web_icon: url(),
  chrome_web_image: url(),
  chrome_web_badge: url(),
  firefox_icon: url(),
  chrome_icon: url(),
  chrome_big_picture: url(),
  wp_wns_sound: text(128),
}

export const ContentFields = Type.Object(contentFields)
export type ContentFields = Static<typeof ContentFields>
export type ContentField = keyof ContentFields

export type ContentChannel = 'push' | 'email' | 'sms'
export const CONTENT_CHANNELS: readonly ContentChannel[] = ['push', 'email', 'sms']

export const channelOf = ({ isEmail, isSMS }: ContentFields): ContentChannel =>
  isEmail ? 'email' : isSMS ? 'sms' : 'push'

const contentNames: ReadonlySet<string> = new Set(Object.keys(contentFields))

/** Returns the content fields of a body that are not null. Other fields are ignored here. */
export function readContent(body: Record<string, unknown>): ContentFields {
  const content: Record<string, unknown> = {}
  // Iterates over the body, because it has a few fields, whereas content has a hundred.
  for (const name in body) {
    const value = ownProperty(body, name)
    if (value !== undefined && value !== null && contentNames.has(name)) content[name] = value
  }
  if (content.isSms !== undefined) {
    content.isSMS ??= content.isSms
    delete content.isSms
  }
  return content as ContentFields
}

/**
 * Content has a few of a hundred possible fields, so callers that check many fields first ask whether any is present.
 */
export function hasAny(content: ContentFields, fields: ReadonlySet<string>): boolean {
  for (const name in content) if (fields.has(name)) return true
  return false
}
