// A journey webhook, the receiver of send_webhook nodes: its state, and how it is answered.

import { AppError } from '../../lib/errors.ts'
import type { Id } from '../../lib/ids.ts'
import type { SignedReceiver } from '../../sending/signed-receivers.ts'

export type JourneyWebhookId = Id<'journey webhook'>

export type JourneyWebhook = SignedReceiver & { id: JourneyWebhookId; name: string }

export const journeyWebhookNotFound = () =>
  new AppError('not-found', { code: 'journey-webhook-not-found', title: 'Journey webhook not found' })

export const webhookObject = (webhook: JourneyWebhook) => ({
  id: webhook.id,
  name: webhook.name,
  url: webhook.url,
  created_at: webhook.createdAt.toISOString(),
  updated_at: webhook.updatedAt.toISOString(),
})
