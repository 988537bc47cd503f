// The wire format of the legacy player operations.

import Type, { type Static } from 'typebox'
import { PropertiesBody, Purchase, Tags } from '../schema.ts'

const optional = <Value>(type: string, options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))
const text = (maxLength: number) => optional<string>('string', { maxLength })
const integer = () => optional<number>('integer', { minimum: -2147483648, maximum: 2147483647 })
const counter = () => optional<number>('integer', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const fields = {
  identifier: text(4096),
  language: text(32),
  timezone: optional<number>('integer', { minimum: -86_400, maximum: 86_400, description: 'Offset in seconds.' }),
  game_version: text(256),
  device_model: text(256),
  device_os: text(256),
  ad_id: text(256),
  sdk: text(256),
  session_count: counter(),
  tags: PropertiesBody.properties.tags,
  external_user_id: text(512),
  notification_types: integer(),
  test_type: integer(),
  lat: PropertiesBody.properties.lat,
  long: PropertiesBody.properties.long,
  country: text(8),
  badge_count: integer(),
  net_type: integer(),
  carrier: text(256),
  rooted: optional<boolean>('boolean'),
  web_auth: text(1024),
  web_p256: text(1024),
  ip: text(64),
}

export const AddPlayerBody = Type.Object({
  app_id: Type.String(),
  device_type: Type.Integer({
    description:
      '0 iOS, 1 Android, 2 Amazon, 3 Windows Phone, 4 Chrome extension, 5 Chrome web push, 6 Windows, 7 Safari, 8 Firefox, 9 macOS, 10 Alexa, 11 email, 13 Huawei, 14 SMS, 17 Safari web push',
  }),
  ...fields,
  created_at: PropertiesBody.properties.first_active,
  last_active: PropertiesBody.properties.last_active,
})
export type AddPlayerBody = Static<typeof AddPlayerBody>

const appOfKey = { description: 'The app of the key by default.' }

export const EditPlayerBody = Type.Object({ app_id: optional<string>('string', appOfKey), ...fields })
export type EditPlayerBody = Static<typeof EditPlayerBody>

export const PurchaseBody = Type.Object({
  app_id: optional<string>('string', appOfKey),
  purchases: Type.Array(Purchase, { minItems: 1, maxItems: 100 }),
})
export const FocusBody = Type.Object({
  app_id: optional<string>('string', appOfKey),
  active_time: Type.Integer({ minimum: 0, maximum: 31_622_400, description: 'Seconds in the foreground.' }),
})
export const TagsBody = Type.Object({ tags: Tags })

export const PlayerPath = Type.Object({ player_id: Type.String() })
export const AppQuery = Type.Object({ app_id: Type.String() })
export const OptionalAppQuery = Type.Object({ app_id: Type.Optional(Type.String(appOfKey)) })
export const PlayersQuery = Type.Object({
  app_id: Type.String(),
  limit: Type.Integer({ minimum: 1, maximum: 300, default: 300 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
})

export const Success = Type.Object({ success: Type.Boolean() })
export const PlayerAdded = Type.Object({ success: Type.Boolean(), id: Type.String() })

const nullable = <Value>(type: string) => Type.Unsafe<Value | null>({ type: [type, 'null'] })

export const PlayerObject = Type.Object({
  id: Type.String(),
  identifier: nullable<string>('string'),
  session_count: Type.Integer(),
  language: nullable<string>('string'),
  timezone: nullable<number>('integer'),
  game_version: nullable<string>('string'),
  device_os: nullable<string>('string'),
  device_type: Type.Integer(),
  device_model: nullable<string>('string'),
  ad_id: nullable<string>('string'),
  tags: Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
  last_active: Type.Integer(),
  playtime: Type.Integer(),
  amount_spent: Type.Number(),
  created_at: Type.Integer(),
  invalid_identifier: Type.Boolean(),
  badge_count: Type.Integer(),
  sdk: nullable<string>('string'),
  test_type: nullable<number>('integer'),
  ip: nullable<string>('string'),
  external_user_id: nullable<string>('string'),
  notification_types: Type.Integer(),
  country: nullable<string>('string'),
  lat: nullable<number>('number'),
  long: nullable<number>('number'),
})
export type PlayerObject = Static<typeof PlayerObject>

export const PlayersAnswer = Type.Object({
  total_count: Type.Integer(),
  offset: Type.Integer(),
  limit: Type.Integer(),
  players: Type.Array(PlayerObject),
})
