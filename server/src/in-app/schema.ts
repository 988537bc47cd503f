// The wire shapes of in-app messages, for their authors and for the SDKs.

import Type, { type Static } from 'typebox'
import { InAppContent, type InAppContents } from './content.ts'
import { AUDIENCES, PLATFORMS, STATES } from './message.ts'

const orNull = <Value>(type: string, options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))
const oneOf = <Word extends string>(words: readonly Word[], description: string) =>
  Type.Optional(Type.Unsafe<Word | null>({ enum: [...words, null], description }))
const moment = (description: string) => orNull<string>('string', { format: 'date-time', description })
const segments = (description: string) =>
  orNull<string[]>('array', { items: { type: 'string', minLength: 1, maxLength: 128 }, maxItems: 10, description })
const uuid = () => Type.String({ format: 'uuid' })

const LOCATIONS = ['top', 'center', 'bottom', 'full'] as const

const name = Type.String({ minLength: 1, maxLength: 128 })
const contents = Type.Unsafe<InAppContents>({
  type: 'object',
  additionalProperties: InAppContent,
  description: 'By language code; `en` is what everybody else gets. Replaced as a whole.',
})
const state = oneOf(
  STATES,
  'Defaults to a draft. From there to live, between live and paused, and to archived for good.',
)
const settings = {
  display_location: oneOf(LOCATIONS, 'Defaults to `center`.'),
  display_duration: orNull<number>('number', {
    exclusiveMinimum: 0,
    maximum: 86_400,
    description: 'Seconds until it closes by itself.',
  }),
  styles: orNull<{ remove_height_margin?: boolean | null; remove_width_margin?: boolean | null }>('object', {
    properties: {
      remove_height_margin: { type: ['boolean', 'null'] },
      remove_width_margin: { type: ['boolean', 'null'] },
    },
  }),
  triggers: orNull<unknown[]>('array', {
    description:
      'Any of these lists, each of which wants all of its triggers `{kind, property, operator, value}`. Kinds: `custom` (the default), `session_time`, `min_time_since` (or `time_since_last_in_app`). None: when the app is opened.',
  }),
  audience: oneOf(AUDIENCES, 'The users of the segments (the default), or only those of them to whom it was granted.'),
  included_segments: segments('Names or ids; none means everybody.'),
  excluded_segments: segments('Names or ids.'),
  platforms: orNull<(typeof PLATFORMS)[number][]>('array', {
    items: { enum: [...PLATFORMS] },
    uniqueItems: true,
    maxItems: PLATFORMS.length,
    description: 'None means all.',
  }),
  redisplay: orNull<{ limit: number; delay: number }>('object', {
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 1_000_000 },
      delay: { type: 'integer', minimum: 0, maximum: 31_536_000 },
    },
    required: ['limit', 'delay'],
    description: 'Show it up to `limit` times, `delay` seconds apart. Without it: once.',
  }),
  start_time: moment('Not shown before.'),
  end_time: moment('Not shown from here on.'),
}

export const CreateInAppBody = Type.Object({ name, contents, state, ...settings })
export type CreateInAppBody = Static<typeof CreateInAppBody>
export const UpdateInAppBody = Type.Object({
  name: Type.Optional(name),
  contents: Type.Optional(contents),
  state,
  ...settings,
})
export type UpdateInAppBody = Static<typeof UpdateInAppBody>

export const AppPath = Type.Object({ app_id: Type.String() })
export const MessagePath = Type.Object({ app_id: Type.String(), in_app_message_id: uuid() })
export const ListQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
})

const orNullAnswer = <Value>(type: string) => Type.Unsafe<Value | null>({ type: [type, 'null'] })
const SummaryAnswer = Type.Object({
  id: uuid(),
  name: Type.String(),
  state: Type.Unsafe<(typeof STATES)[number]>({ enum: [...STATES] }),
  is_active: Type.Boolean({ description: 'Whether its state is live; it may yet have to wait for its time.' }),
  start_time: orNullAnswer<string>('string'),
  end_time: orNullAnswer<string>('string'),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
})
export const ListAnswer = Type.Object({
  in_app_messages: Type.Array(SummaryAnswer),
  total_count: Type.Integer(),
  offset: Type.Integer(),
  limit: Type.Integer(),
})
const Counted = Type.Object({
  total: Type.Integer(),
  unique: Type.Integer({ description: 'Subscriptions.' }),
})
const CountedTarget = Type.Object({ id: Type.String(), ...Counted.properties })
const InAppStats = Type.Object({
  impressions: Counted,
  clicks: Counted,
  page_impressions: Counted,
  variants: Type.Array(Type.Object({ id: uuid(), language: Type.String(), impressions: Counted, clicks: Counted })),
  buttons: Type.Array(CountedTarget),
  pages: Type.Array(CountedTarget),
})
export type InAppStats = Static<typeof InAppStats>
export const MessageAnswer = Type.Object({
  ...SummaryAnswer.properties,
  contents,
  variants: Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'By language. The id of a variant is also the id of its preview.',
  }),
  has_liquid: Type.Boolean(),
  display_location: Type.Unsafe<(typeof LOCATIONS)[number]>({ enum: [...LOCATIONS] }),
  display_duration: orNullAnswer<number>('number'),
  styles: Type.Object({ remove_height_margin: Type.Boolean(), remove_width_margin: Type.Boolean() }),
  triggers: Type.Array(Type.Array(Type.Unsafe<object>({ type: 'object' }))),
  audience: Type.Unsafe<(typeof AUDIENCES)[number]>({ enum: [...AUDIENCES] }),
  included_segments: Type.Array(uuid()),
  excluded_segments: Type.Array(uuid()),
  missing_segments: Type.Array(uuid(), {
    description: 'Segments of the two lists that were deleted. While one is excluded, nobody is shown the message.',
  }),
  platforms: Type.Array(Type.Unsafe<(typeof PLATFORMS)[number]>({ enum: [...PLATFORMS] })),
  redisplay: Type.Union([Type.Object({ limit: Type.Integer(), delay: Type.Integer() }), Type.Null()]),
  stats: InAppStats,
})
export const DeletedAnswer = Type.Object({ success: Type.Boolean() })

// ---- SDKs

export const DevicePath = Type.Object({ app_id: Type.String(), subscription_id: Type.String() })
export const DeviceOfUserPath = Type.Object({
  app_id: Type.String(),
  alias_label: Type.String(),
  alias_id: Type.String(),
  subscription_id: Type.String(),
})
export const DeviceAnswer = Type.Object({
  in_app_messages: Type.Array(
    Type.Object({
      id: uuid(),
      variants: Type.Unsafe<Record<string, Record<string, string>>>({
        type: 'object',
        additionalProperties: { type: 'object', additionalProperties: { type: 'string' } },
        description: 'By platform (or `all`) and language; `default` where the language is not there.',
      }),
      triggers: Type.Array(Type.Array(Type.Unsafe<object>({ type: 'object' }))),
      redisplay: Type.Optional(Type.Object({ limit: Type.Integer(), delay: Type.Integer() })),
      end_time: Type.Optional(Type.String({ format: 'date-time' })),
      has_liquid: Type.Optional(Type.Literal(true)),
      displayDuration: Type.Optional(Type.Number()),
    }),
  ),
})
export type DeviceAnswer = Static<typeof DeviceAnswer>

export const VariantPath = Type.Object({ in_app_message_id: uuid(), variant_id: uuid() })
export const AppQuery = Type.Object({ app_id: Type.String() })
export const PreviewQuery = Type.Object({ app_id: Type.String(), preview_id: uuid() })
export const HtmlAnswer = Type.Object({
  html: Type.String(),
  display_duration: Type.Optional(Type.Number()),
  styles: Type.Object({ remove_height_margin: Type.Boolean(), remove_width_margin: Type.Boolean() }),
})
export type HtmlAnswer = Static<typeof HtmlAnswer>

export const ReportPath = Type.Object({ in_app_message_id: uuid() })
const report = {
  app_id: Type.String(),
  player_id: Type.String({ format: 'uuid', description: 'The id of the subscription.' }),
  variant_id: orNull<string>('string', { maxLength: 128 }),
  device_type: orNull<number>('integer'),
}
export const ImpressionBody = Type.Object({ ...report, first_impression: orNull<boolean>('boolean') })
export const ClickBody = Type.Object({
  ...report,
  click_id: orNull<string>('string', { maxLength: 128 }),
  click_type: orNull<string>('string', { maxLength: 128 }),
  first_click: orNull<boolean>('boolean'),
})
export const PageBody = Type.Object({ ...report, page_id: orNull<string>('string', { maxLength: 128 }) })
export const ReportedAnswer = Type.Object({})
