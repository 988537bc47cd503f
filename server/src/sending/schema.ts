// The wire format of sending.

import Type, { type Static, type TSchema } from 'typebox'
import { noticeKinds } from './notify-administrators.ts'
import { DAYS, DELIVERY_CHANNELS, type DeliverySettings, UNITS } from './settings.ts'

/** Validated by the schema, unless it is null. */
const orNull = <Schema extends TSchema & { type: string }>(schema: Schema) =>
  Type.Unsafe<Static<Schema> | null>({ ...schema, type: [schema.type, 'null'] })
const oneOf = <Word extends string>(...words: Word[]) => Type.Unsafe<Word>({ type: 'string', enum: words })

const QuietHoursBody = Type.Object({
  start: Type.String({ description: '`HH:MM` on the clock of the user, as 22:00.' }),
  end: Type.String({
    description: '`HH:MM`; at or before the start it is on the next day. The same as the start: 24 hours.',
  }),
  days: Type.Optional(
    Type.Array(oneOf(...DAYS), {
      minItems: 1,
      maxItems: 7,
      description: 'The days on which they begin. Defaults to every day.',
    }),
  ),
  channels: Type.Optional(
    Type.Array(oneOf(...DELIVERY_CHANNELS), { minItems: 1, maxItems: 3, description: 'Defaults to all.' }),
  ),
  fallback_time_zone: Type.Optional(
    Type.String({ maxLength: 64, description: 'For users whose time zone is unknown. Defaults to UTC.' }),
  ),
})

const FrequencyCap = Type.Object({
  channel: oneOf(...DELIVERY_CHANNELS),
  count: Type.Integer({ minimum: 1, maximum: 10_000 }),
  window: Type.Integer({ minimum: 1, maximum: 43_200 }),
  unit: oneOf(...(Object.keys(UNITS) as (keyof typeof UNITS)[])),
})

const described = { description: 'Null is as good as never set.' }
const throttle = Type.Integer({ minimum: 1, maximum: 10_000_000 })
const retention = Type.Integer({ minimum: 1, maximum: 3_650 })
const factor = Type.Integer({ minimum: 1, maximum: 100_000 })

export const DeliverySettingsBody = Type.Object({
  quiet_hours: Type.Optional(orNull(QuietHoursBody)),
  frequency_caps: Type.Optional(orNull(Type.Array(FrequencyCap, { maxItems: 3, ...described }))),
  throttle_per_minute: Type.Optional(orNull(throttle)),
  retention_days: Type.Optional(orNull(retention)),
  limit_factor: Type.Optional(orNull(factor)),
})
export type DeliverySettingsBody = Static<typeof DeliverySettingsBody>

export const DeliverySettingsAnswer = Type.Object({
  quiet_hours: orNull(
    Type.Object({
      start: Type.String(),
      end: Type.String(),
      days: Type.Array(oneOf(...DAYS)),
      channels: Type.Array(oneOf(...DELIVERY_CHANNELS)),
      fallback_time_zone: Type.String(),
    }),
  ),
  frequency_caps: Type.Array(FrequencyCap),
  throttle_per_minute: orNull(throttle),
  retention_days: orNull(retention),
  limit_factor: factor,
})

export function settingsObject(settings: DeliverySettings): Static<typeof DeliverySettingsAnswer> {
  const { quietHours, frequencyCaps, throttlePerMinute, retentionDays, limitFactor } = settings
  return {
    quiet_hours: quietHours && {
      start: quietHours.start,
      end: quietHours.end,
      days: quietHours.days,
      channels: quietHours.channels,
      fallback_time_zone: quietHours.fallbackTimeZone,
    },
    frequency_caps: frequencyCaps.map(({ channel, count, window, unit }) => ({ channel, count, window, unit })),
    throttle_per_minute: throttlePerMinute,
    retention_days: retentionDays,
    limit_factor: limitFactor,
  }
}

const time = () => Type.String({ format: 'date-time' })
const timeOrNull = (description?: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', ...(description && { description }) })
const uuid = () => Type.String({ format: 'uuid' })

export const Notice = Type.Object({
  id: uuid(),
  at: time(),
  kind: oneOf(...noticeKinds),
  administrator_id: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'uuid',
    description: 'Null in the notice of the app itself.',
  }),
  detail: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
  state: oneOf('listed', 'waiting', 'sent', 'failed'),
  way: Type.Unsafe<'webhook' | 'mail' | null>({
    enum: ['webhook', 'mail', null],
    description: 'How it goes out; null when it is only listed.',
  }),
  settled_at: timeOrNull(),
  reason: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Why it could not be sent.' }),
})

export const NoticesQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
})
export const NoticesAnswer = Type.Object({
  limit: Type.Integer(),
  offset: Type.Integer(),
  total_count: Type.Integer(),
  notices: Type.Array(Notice),
})

export const SendingAnswer = Type.Object({
  state: oneOf('sending', 'held'),
  hold: orNull(
    Type.Object({
      reason: oneOf('restored', 'server_paused', 'paused', 'disabled'),
      since: time(),
      until: timeOrNull('When it ends by itself, as far as can be told.'),
    }),
  ),
  paused_since: timeOrNull(),
  disabled_since: timeOrNull(),
  enabled_at: timeOrNull('When the app was last disabled no more.'),
  usage: Type.Object({
    used: Type.Integer({ description: 'Messages that count at this moment.' }),
    limit: Type.Integer({ description: 'How many may.' }),
    window_seconds: Type.Integer(),
  }),
  notices: Type.Array(Notice, { description: 'The newest ten.' }),
})

export const AdministratorBody = Type.Object({
  email: Type.Optional(orNull(Type.String({ maxLength: 254 }))),
  webhook_url: Type.Optional(
    orNull(Type.String({ maxLength: 2_048, description: 'An https address; notices are posted there, signed.' })),
  ),
})
export type AdministratorBody = Static<typeof AdministratorBody>

const administrator = {
  id: uuid(),
  email: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  webhook_url: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  created_at: time(),
}
export const AdministratorAnswer = Type.Object({
  ...administrator,
  webhook_secret: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Verifies the signature of notices. Shown this once.',
  }),
})
export const AdministratorsAnswer = Type.Object({ administrators: Type.Array(Type.Object(administrator)) })
export const AppPath = Type.Object({ app_id: Type.String() })
export const AdministratorPath = Type.Object({ app_id: Type.String(), administrator_id: uuid() })
export const DoneAnswer = Type.Object({ success: Type.Boolean() })
