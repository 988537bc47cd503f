// The wire shapes of the receivers of send_webhook.

import Type, { type Static } from 'typebox'

const name = Type.String({ minLength: 1, maxLength: 128 })
const url = Type.String({ minLength: 1, maxLength: 2_048, description: 'An https address that anybody can reach.' })

export const WebhookPath = Type.Object({ app_id: Type.String(), journey_webhook_id: Type.String() })

export const NewWebhookBody = Type.Object({ name, url })
export type NewWebhookBody = Static<typeof NewWebhookBody>
export const WebhookBody = Type.Object({ name: Type.Optional(name), url: Type.Optional(url) })
export type WebhookBody = Static<typeof WebhookBody>

export const WebhookAnswer = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The `webhook_id` of send_webhook nodes.' }),
  name: Type.String(),
  url: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
})
export const NewWebhookAnswer = Type.Object({
  ...WebhookAnswer.properties,
  secret: Type.String({ description: 'What requests are signed with (Standard Webhooks). Shown this once.' }),
})
export const WebhooksAnswer = Type.Object({ journey_webhooks: Type.Array(WebhookAnswer) })
export const TriedAnswer = Type.Object({
  success: Type.Boolean({ description: 'Whether it answered with a status of 200 to 299.' }),
  reason: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Why not, as `status 500` or `timeout`.',
  }),
})
