// The wire format of users, identities and subscriptions. What a JSON schema cannot express is checked in
// properties.ts, identity.ts and subscription.ts.

import Type, { type Static, type TSchema } from 'typebox'
import { columnAnswers, columnRequests } from './properties/columns.ts'
import { optionalNumberOrText, optionalOrNull, optionalText } from './properties/optional.ts'

/** `additionalProperties` rather than a pattern: the pattern `.*` would let keys with a line break slip through. */
const mapOf = <Value>(values: object, options: object = {}) =>
  Type.Unsafe<Record<string, Value>>({ type: 'object', additionalProperties: values, ...options })

const integer = (description?: string) =>
  optionalOrNull<number>('integer', { minimum: -2147483648, maximum: 2147483647, ...(description && { description }) })
const counter = (description: string) =>
  optionalOrNull<number>('integer', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

export const Identity = mapOf<string>(
  { type: 'string' },
  {
    description: 'Alias labels and values, each of at most 128 characters. `onesignal_id` is assigned by the service.',
  },
)

export const Purchase = Type.Object({
  sku: Type.String({ minLength: 1, maxLength: 255 }),
  iso: Type.String({ description: 'Currency code of three letters.' }),
  amount: Type.String({ description: 'A decimal, with or without a currency sign: "33.33" or "$33.33".' }),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
})
export type Purchase = Static<typeof Purchase>

const Purchases = Type.Optional(Type.Array(Purchase, { maxItems: 100 }))

export const Tags = mapOf<string | number | boolean | null>(
  { type: ['string', 'number', 'boolean', 'null'] },
  { description: 'Merged into the stored tags; "" or null removes a tag. Values are kept as text.' },
)

export const PropertiesBody = Type.Object({
  tags: Type.Optional(Tags),
  ...columnRequests,
  first_active: optionalNumberOrText('Unix seconds.'),
  last_active: optionalNumberOrText('Unix seconds.'),
  amount_spent: optionalNumberOrText('Accepted by Create user alone.'),
  purchases: Purchases,
})
export type PropertiesBody = Static<typeof PropertiesBody>

export const Deltas = Type.Object({
  session_time: counter('Seconds to add.'),
  session_count: counter('Sessions to add.'),
  purchases: Purchases,
})
export type Deltas = Static<typeof Deltas>

export const SubscriptionDraft = Type.Object({
  id: optionalText(36, 'An existing subscription, to be transferred or changed.'),
  type: optionalText(64, 'iOSPush, AndroidPush, …, Email or SMS, in any case.'),
  token: optionalText(4096, 'Push token, email address or phone number (E.164).'),
  enabled: optionalOrNull<boolean>('boolean'),
  notification_types: integer('1 subscribed, -2 unsubscribed, 0 no permission, …'),
  session_time: counter('Seconds.'),
  session_count: counter('Sessions.'),
  sdk: optionalText(256),
  device_model: optionalText(256),
  device_os: optionalText(256),
  rooted: optionalOrNull<boolean>('boolean'),
  test_type: integer(),
  app_version: optionalText(256),
  net_type: integer(),
  carrier: optionalText(256),
  web_auth: optionalText(1024),
  web_p256: optionalText(1024),
})
export type SubscriptionDraft = Static<typeof SubscriptionDraft>

export const CreateUserBody = Type.Object({
  identity: Type.Optional(Identity),
  properties: Type.Optional(PropertiesBody),
  subscriptions: Type.Optional(Type.Array(SubscriptionDraft, { maxItems: 100 })),
})
export type CreateUserBody = Static<typeof CreateUserBody>

export const UpdateUserBody = Type.Object({
  properties: Type.Optional(PropertiesBody),
  deltas: Type.Optional(Deltas),
})
export type UpdateUserBody = Static<typeof UpdateUserBody>

export const IdentityBody = Type.Object({ identity: Identity })
export const SubscriptionBody = Type.Object({ subscription: SubscriptionDraft })

const answer = <Schema extends TSchema>(schema: Schema) => schema

export const IdentityAnswer = answer(
  Type.Object({
    identity: mapOf<string>({ type: 'string' }, { required: ['onesignal_id'] }),
  }),
)

export const PropertiesObject = Type.Object({
  tags: mapOf<string>({ type: 'string' }),
  ...columnAnswers,
  first_active: Type.Integer(),
  last_active: Type.Integer(),
  session_time: Type.Integer(),
  session_count: Type.Integer(),
  amount_spent: Type.Number(),
  purchases: Type.Array(Purchase),
})

/** See `seenBy` in routes.ts. */
const ReadToken = { ryw_token: Type.Optional(Type.String({ description: 'For SDKs: when the write was made.' })) }

export const PropertiesAnswer = Type.Object({ properties: PropertiesObject, ...ReadToken })

export const SubscriptionObject = Type.Object({
  id: Type.String(),
  app_id: Type.String(),
  type: Type.String(),
  token: Type.String(),
  enabled: Type.Boolean(),
  notification_types: Type.Integer(),
  session_time: Type.Integer(),
  session_count: Type.Integer(),
  sdk: Type.String(),
  device_model: Type.String(),
  device_os: Type.String(),
  rooted: Type.Boolean(),
  test_type: Type.Integer(),
  app_version: Type.String(),
  net_type: Type.Integer(),
  carrier: Type.String(),
  web_auth: Type.String(),
  web_p256: Type.String(),
})
export type SubscriptionObject = Static<typeof SubscriptionObject>

export const UserAnswer = Type.Object({
  identity: mapOf<string>({ type: 'string' }, { required: ['onesignal_id'] }),
  properties: PropertiesObject,
  subscriptions: Type.Optional(
    Type.Array(SubscriptionObject, {
      description: 'Left out where an SDK without an identity token does not name its own.',
    }),
  ),
  ...ReadToken,
})
export const SubscriptionAnswer = Type.Object({ subscription: SubscriptionObject, ...ReadToken })

export const AppPath = Type.Object({ app_id: Type.String() })
export const AliasPath = Type.Object({ app_id: Type.String(), alias_label: Type.String(), alias_id: Type.String() })
export const SubscriptionPath = Type.Object({ app_id: Type.String(), subscription_id: Type.String() })
