// Journey webhooks as a kind of receivers of signed webhooks.

import { AppError } from '../../lib/errors.ts'
import { createSignedReceivers } from '../../sending/signed-receivers.ts'
import { deleteWebhook, findWebhook, findWebhooks, insertWebhook, lockWebhook, updateWebhook } from './store.ts'
import { type JourneyWebhook, journeyWebhookNotFound } from './webhook.ts'

const MAX_WEBHOOKS = 100

export const journeyReceivers = createSignedReceivers<JourneyWebhook>({
  table: 'journey_webhooks',
  targetType: 'journey_webhook',
  auditDetail: ({ name }) => ({ name }),
  limit: MAX_WEBHOOKS,
  limitReached: () =>
    new AppError('conflict', {
      code: 'journey-webhook-limit',
      title: `An app can have at most ${MAX_WEBHOOKS} journey webhooks`,
    }),
  notFound: journeyWebhookNotFound,
  store: {
    findAll: findWebhooks,
    find: findWebhook,
    lock: lockWebhook,
    insert: insertWebhook,
    update: updateWebhook,
    delete: deleteWebhook,
  },
})
