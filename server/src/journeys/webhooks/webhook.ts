// A receiver of send_webhook: what we know of it, and how it is answered.

import { AppError } from '../../lib/errors.ts'
import type { AppId, Id } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import { sealedFor, secretsAt, type WebhookSecrets } from '../../lib/webhook-secrets.ts'

export type JourneyWebhookId = Id<'journey webhook'>

export type JourneyWebhook = WebhookSecrets & {
  id: JourneyWebhookId
  name: string
  url: string
  createdAt: Date
  updatedAt: Date
}

export const journeyWebhookNotFound = () =>
  new AppError('not-found', { code: 'journey-webhook-not-found', title: 'Journey webhook not found' })

export const webhookSecret = (secrets: SecretBox, appId: AppId, id: JourneyWebhookId) =>
  sealedFor(secrets, 'journey_webhooks', appId, id)

export const signingSecrets = (secrets: SecretBox, appId: AppId, webhook: JourneyWebhook, now: Date): string[] =>
  secretsAt(webhookSecret(secrets, appId, webhook.id), webhook, now)

export const webhookObject = (it: JourneyWebhook) => ({
  id: it.id,
  name: it.name,
  url: it.url,
  created_at: it.createdAt.toISOString(),
  updated_at: it.updatedAt.toISOString(),
})
