// The wire shapes of event webhooks.

import Type, { type Static } from 'typebox'
import { type EventKind, eventKinds } from '../messages/feedback/delivery-event.ts'

const url = Type.String({ minLength: 1, maxLength: 2_048, description: 'An https address that anybody can reach.' })
const kinds = Type.Array(Type.Unsafe<EventKind>({ type: 'string', enum: [...eventKinds] }), {
  minItems: 1,
  maxItems: eventKinds.length,
  description: 'The events that it receives.',
})
const time = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description })

export const AppPath = Type.Object({ app_id: Type.String() })
export const WebhookPath = Type.Object({ app_id: Type.String(), webhook_id: Type.String({ format: 'uuid' }) })

export const NewWebhookBody = Type.Object({ url, kinds })
export type NewWebhookBody = Static<typeof NewWebhookBody>

export const WebhookBody = Type.Object({
  url: Type.Optional(url),
  kinds: Type.Optional(kinds),
  enabled: Type.Optional(
    Type.Boolean({ description: 'True begins anew after it was given up; what happened meanwhile is not told.' }),
  ),
})
export type WebhookBody = Static<typeof WebhookBody>

export const WebhookAnswer = Type.Object({
  id: Type.String({ format: 'uuid' }),
  url: Type.String(),
  kinds: Type.Array(Type.Unsafe<EventKind>({ type: 'string', enum: [...eventKinds] })),
  enabled: Type.Boolean(),
  disabled_at: time('When it was switched off; null while it receives events.'),
  disabled_reason: Type.Unsafe<string | null>({
    enum: ['gone', 'failing', 'switched off', null],
    description: '`gone`: it answered 410. `failing`: three days without a success. `switched off`: by an update.',
  }),
  failing_since: time('Since when every try has failed; null while it answers.'),
  last_failure: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'As `status 503` or `timeout`.' }),
  next_try_at: time('When it is tried again.'),
  dropped_events: Type.Integer({ description: 'Events that could not be delivered within a day.' }),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
})
export type WebhookAnswer = Static<typeof WebhookAnswer>

export const WebhooksAnswer = Type.Object({ event_webhooks: Type.Array(WebhookAnswer) })
export const NewWebhookAnswer = Type.Object({
  ...WebhookAnswer.properties,
  secret: Type.String({ description: 'What requests are signed with (Standard Webhooks). Shown this once.' }),
})
export const DeletedAnswer = Type.Object({ success: Type.Boolean() })
export const TriedAnswer = Type.Object({
  success: Type.Boolean({ description: 'Whether it answered with a status of 200 to 299.' }),
  reason: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Why not, as `status 500` or `timeout`.',
  }),
})
