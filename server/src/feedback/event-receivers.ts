// Event webhooks as a kind of signed receiver.

import { AppError } from '../lib/errors.ts'
import { createSignedReceivers } from '../sending/signed-receivers.ts'
import { type Webhook, webhookNotFound } from './webhook.ts'
import { deleteWebhook, findWebhook, findWebhooks, insertWebhook, lockWebhook, updateWebhook } from './webhook-store.ts'

const MAX_WEBHOOKS = 20

export const eventReceivers = createSignedReceivers<Webhook>({
  table: 'event_webhooks',
  targetType: 'event_webhook',
  auditDetail: () => ({}),
  limit: MAX_WEBHOOKS,
  limitReached: () =>
    new AppError('conflict', {
      code: 'event-webhook-1',
      title: `An app can have at most ${MAX_WEBHOOKS} event webhooks`,
    }),
  notFound: webhookNotFound,
  store: {
    findAll: findWebhooks,
    find: findWebhook,
    lock: lockWebhook,
    insert: insertWebhook,
    update: updateWebhook,
    delete: deleteWebhook,
  },
})
