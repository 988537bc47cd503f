// The wire shapes of reports.

import Type, { type Static } from 'typebox'

export const AppPath = Type.Object({ app_id: Type.String() })
export const MessagePath = Type.Object({ app_id: Type.String(), message_id: Type.String() })

const nullable = (schema: object = {}) => Type.Unsafe<string | null>({ type: ['string', 'null'], ...schema })
const STATES = ['pending', 'sending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled'] as const
const State = Type.Unsafe<(typeof STATES)[number]>({ type: 'string', enum: [...STATES] })

export const DeliveriesQuery = Type.Object({
  state: Type.Optional(State),
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
  cursor: Type.Optional(Type.String({ maxLength: 200, description: 'next_cursor of the page before.' })),
})
export type DeliveriesQuery = Static<typeof DeliveriesQuery>

const DeliveryObject = Type.Object({
  subscription_id: Type.String(),
  onesignal_id: Type.String(),
  type: Type.String(),
  state: State,
  reason: nullable({ description: 'Why it is in this state; what a provider said, in its words.' }),
  attempts: Type.Integer(),
  due_at: Type.String(),
  expires_at: Type.String(),
  settled_at: nullable(),
  received_at: nullable(),
  clicked_at: nullable(),
  delivered_at: nullable({ description: 'Of email, like all that follows: a mail server took it.' }),
  opened_at: nullable(),
  bounced_at: nullable(),
  complained_at: nullable(),
  unsubscribed_at: nullable(),
  inbox_provider: nullable(),
  provider_reference: nullable({ description: "The provider's own name for it." }),
})
export type DeliveryObject = Static<typeof DeliveryObject>

export const DeliveriesAnswer = Type.Object({ deliveries: Type.Array(DeliveryObject), next_cursor: nullable() })
export type DeliveriesAnswer = Static<typeof DeliveriesAnswer>

export const ExplainMessageQuery = Type.Object({
  external_id: Type.Optional(Type.String()),
  onesignal_id: Type.Optional(Type.String()),
  subscription_id: Type.Optional(Type.String()),
})
export type ExplainMessageQuery = Static<typeof ExplainMessageQuery>

export const ExplainMessageAnswer = Type.Object({
  message_id: Type.String(),
  onesignal_id: Type.String(),
  message_state: Type.String(),
  explanation: Type.String(),
  holds: Type.Array(Type.String(), { description: 'Why nothing is sent at this moment.' }),
  subscriptions: Type.Array(
    Type.Object({
      id: Type.String(),
      type: Type.String(),
      is_subscribed: Type.Boolean(),
      matches_now: Type.Boolean({ description: 'Would the audience hold it, were it read now?' }),
      absence: nullable({ description: 'Why there is no delivery.' }),
      explanation: Type.String(),
      delivery: Type.Union([DeliveryObject, Type.Null()]),
    }),
  ),
})
export type ExplainMessageAnswer = Static<typeof ExplainMessageAnswer>

export const UnknownsBody = Type.Object({
  subscription_ids: Type.Optional(
    Type.Unsafe<string[] | null>({
      type: ['array', 'null'],
      items: { type: 'string', format: 'uuid' },
      minItems: 1,
      maxItems: 1_000,
      description: 'Only these. Defaults to all.',
    }),
  ),
})
export type UnknownsBody = Static<typeof UnknownsBody>

export const UnknownsQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
  cursor: Type.Optional(Type.String({ maxLength: 200, description: 'next_cursor of the page before.' })),
})
export type UnknownsQuery = Static<typeof UnknownsQuery>

export const UnknownsAnswer = Type.Object({
  deliveries: Type.Array(
    Type.Object({
      subscription_id: Type.String(),
      onesignal_id: Type.String(),
      type: Type.String(),
      reason: nullable(),
      attempts: Type.Integer(),
      settled_at: Type.String(),
    }),
  ),
  next_cursor: nullable(),
})
export type UnknownsAnswer = Static<typeof UnknownsAnswer>

export const ResentAnswer = Type.Object({ resent: Type.Integer() })
export const ClosedAnswer = Type.Object({ closed: Type.Integer() })
