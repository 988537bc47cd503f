// The wire shapes of messages. Their content is shared with templates; the schemas here add the recipients and the
// schedule.

import Type, { type Static } from 'typebox'
import { OutcomeObject, outcomeQuery } from '../outcomes/schema.ts'
import type { SegmentFilter } from '../segments/filters/tree.ts'
import { contentFields } from '../templates/content.ts'

export const MAX_TARGETS = 20_000
const MAX_SEGMENTS = 100

/** Clients send null for what they leave out. */
const orNull = <Value>(type: string | string[], options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'].flat(), ...options }))
const list = (description: string, maxItems = MAX_TARGETS) =>
  orNull<string[]>('array', { items: { type: 'string' }, maxItems, description })
const text = (maxLength: number, description: string) => orNull<string>('string', { maxLength, description })
const flag = (description: string) => orNull<boolean>('boolean', { description })
const oneOf = <Value extends string>(values: Value[], description: string) =>
  Type.Optional(Type.Unsafe<Value | null>({ enum: [...values, null], description }))

const LEGACY_TOKENS = 'Legacy: push tokens. Those that are not known become subscriptions.'

type StageGiven = { start: string; end: string; quota: number; acked?: boolean | null }

/** Whom a message is for. Exactly one of these must be set, apart from fields that only refine another. */
const targetFields = {
  include_aliases: orNull<Record<string, string[]>>('object', {
    additionalProperties: { type: 'array', items: { type: 'string' }, maxItems: MAX_TARGETS },
    description: 'Users by alias: label and values. Needs target_channel.',
  }),
  include_subscription_ids: list('Subscriptions by id.'),
  included_segments: list('Segments by name.', MAX_SEGMENTS),
  excluded_segments: list('Users in one of these are left out.', MAX_SEGMENTS),
  filters: orNull<SegmentFilter[]>('array', {
    items: { type: 'object' },
    description: 'As in segments; at most 200 entries.',
  }),
  email_to: list('Email addresses. Those that are not known become subscriptions.'),
  include_email_tokens: list('Legacy: the same as email_to.'),
  include_phone_numbers: list('Phone numbers in E.164 form. Those that are not known become subscriptions.'),
  include_player_ids: list('Legacy: the same as include_subscription_ids.'),
  include_external_user_ids: list('Legacy: users by external_id.'),
  include_ios_tokens: list(LEGACY_TOKENS),
  include_android_reg_ids: list(LEGACY_TOKENS),
  include_chrome_web_reg_ids: list(LEGACY_TOKENS),
  include_chrome_reg_ids: list(LEGACY_TOKENS),
  include_amazon_reg_ids: list(LEGACY_TOKENS),
  include_wp_wns_uris: list(LEGACY_TOKENS),
  target_channel: oneOf(['push', 'email', 'sms'], 'Required with include_aliases, and for SMS to segments or filters.'),
  channel_for_external_user_ids: oneOf(
    ['push', 'email', 'sms'],
    'Legacy, with include_external_user_ids. Defaults to push.',
  ),
}
export type TargetField = keyof typeof targetFields

const optionFields = {
  name: text(128, 'For your own use; never shown to recipients.'),
  template_id: orNull<string>('string', {
    description: 'What the message says, as it is now; fields of the request replace those of the template.',
  }),
  custom_data: orNull<Record<string, unknown>>('object', {
    description: '`message.custom_data` in Liquid. At most 2,048 bytes, 10,240 for an email.',
  }),
  send_after: text(100, 'When to begin; UTC unless it says otherwise. In the past, or not given: now.'),
  delayed_option: oneOf(['timezone', 'last-active', 'send_after', 'immediate'], 'Each recipient at their own time.'),
  delivery_time_of_day: text(20, 'With delayed_option timezone: such as 9:00AM, 21:45 or 09:45:30.'),
  throttle_rate_per_minute: orNull<number | string>(['number', 'string'], {
    description: 'Push alone: at most so many in a minute; 0 is no limit.',
  }),
  enable_frequency_cap: flag('False: sent however many went to the same person before.'),
  idempotency_key: text(
    100,
    'A UUID. Who sends it again within 30 days gets the first answer, and nothing is sent twice.',
  ),
  external_id: text(100, 'Legacy: the same, with keys of its own.'),
  at_least_once: flag('What may or may not have arrived is sent again.'),
  is_test: flag('To test users alone (those with a test_user_name), outside metrics and limits.'),
  kind: oneOf(['warmup'], 'Of email, with email_warm_up.'),
  email_warm_up: orNull<{ stages?: StageGiven[] | null; strategy?: 'recommended' | 'custom' | null }>('object', {
    properties: {
      stages: {
        type: ['array', 'null'],
        maxItems: 100,
        items: {
          type: 'object',
          properties: {
            start: { type: 'string', maxLength: 100 },
            end: { type: 'string', maxLength: 100 },
            quota: { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
            acked: { type: ['boolean', 'null'] },
          },
          required: ['start', 'end', 'quota'],
        },
      },
      strategy: { enum: ['recommended', 'custom', null] },
    },
    description:
      'So many mails in each stage, spread evenly over it; who is beyond the last stage gets none. `recommended` without stages is 100 on the first day and twice as many on each day after it.',
  }),
}

export const CreateMessageBody = Type.Object({
  app_id: Type.String(),
  ...targetFields,
  ...contentFields,
  ...optionFields,
})
export type CreateMessageBody = Static<typeof CreateMessageBody>

const Texts = Type.Array(Type.String())
export const CreatedAnswer = Type.Object({
  id: Type.String({ description: 'Empty when nobody could be reached; then nothing was stored.' }),
  external_id: Type.Optional(
    Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'The idempotency key.' }),
  ),
  recipients: Type.Optional(Type.Integer({ description: 'Of messages that name their recipients.' })),
  errors: Type.Optional(
    Type.Unsafe<object>({
      anyOf: [
        Texts,
        {
          type: 'object',
          description: 'Who is known but not subscribed: `invalid_aliases`, `invalid_player_ids` and others.',
        },
      ],
    }),
  ),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Ours, never an error: what the request says without effect, such as fields that are not known, and that nobody can be reached before a provider is set up. The latter is not said in answers to requests with an idempotency key.',
    }),
  ),
})
export type CreatedAnswer = Static<typeof CreatedAnswer>

const uuid = { format: 'uuid' }
/** Any text is accepted here. The handler answers that there is no such message if it is not an id. */
export const MessagePath = Type.Object({ message_id: Type.String() })
export const AppQuery = Type.Object({ app_id: Type.String() })
export const ViewQuery = Type.Object({ app_id: Type.String(), ...outcomeQuery })
export const ListQuery = Type.Object({
  app_id: Type.String(),
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
  kind: Type.Optional(
    Type.Unsafe<0 | 1 | 3>({ type: 'integer', enum: [0, 1, 3], description: '0 dashboard, 1 API, 3 automated.' }),
  ),
  template_id: Type.Optional(Type.String({ description: 'Those made from this template.' })),
  time_offset: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'An ISO 8601 time, or the `next_time_offset` of the page before: messages after it, in the order of `send_after`. Ask until a page is empty; its `next_time_offset` can be used again later.',
    }),
  ),
})
export type ListQuery = Static<typeof ListQuery>

const count = (description: string) => Type.Integer({ description })
const stats = {
  successful: count('Accepted by the provider.'),
  failed: count('Not subscribed, or the address leads nowhere any more.'),
  errored: count('Failed otherwise, expired, of unknown fate, or not to be sent for want of credentials.'),
  skipped: count('Ours: left out by a rule or by the cancel; with the three before and `remaining`, all recipients.'),
  converted: count('Clicked.'),
  received: count('Confirmed by the device.'),
}
const secondsOrNull = (description: string) => Type.Unsafe<number | null>({ type: ['integer', 'null'], description })

/** All fields of the request come first; those that were not set are null. */
export const MessageAnswer = Type.Object({
  id: Type.String(uuid),
  app_id: Type.String(uuid),
  ...stats,
  remaining: secondsOrNull('Still to be sent; null until it is known how many recipients there are.'),
  queued_at: Type.Integer({ description: 'Unix seconds.' }),
  send_after: Type.Integer({ description: 'Unix seconds.' }),
  completed_at: secondsOrNull('Unix seconds; null until all is sent.'),
  canceled: Type.Boolean(),
  fcap_status: Type.String({ description: '`capped` when somebody was left out because they had enough messages.' }),
  bcc_sent: Type.Integer({ description: 'Copies that went to `email_bcc`.' }),
  platform_delivery_stats: Type.Record(Type.String(), Type.Object(stats)),
  delivery: Type.Object(
    {
      state: Type.String({ description: 'scheduled, expanding, sending, done or canceled.' }),
      states: Type.Record(Type.String(), Type.Integer()),
      reasons: Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer())),
    },
    { description: 'Our own: every delivery is in one state, for one reason.' },
  ),
})

export const ViewedAnswer = Type.Object({ ...MessageAnswer.properties, outcomes: Type.Array(OutcomeObject) })

export const MessagesAnswer = Type.Object({
  total_count: Type.Integer(),
  offset: Type.Integer(),
  limit: Type.Integer(),
  time_offset: Type.Optional(Type.String()),
  next_time_offset: Type.Optional(Type.String()),
  notifications: Type.Array(MessageAnswer),
})

export const CanceledAnswer = Type.Object({ success: Type.Boolean() })
