// Creating, changing and deleting event webhooks, on top of the operations that all signed receivers share.

import type { RequestOrigin } from '../apps/audit/actor.ts'
import type { AppId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import { type ReceiverContext, readWebhookUrl, type WithSecret } from '../sending/signed-receivers.ts'
import type { Db } from '../storage/db.ts'
import type { FeedbackContext } from './context.ts'
import { eventReceivers } from './event-receivers.ts'
import { SEND_EVENT_WEBHOOKS } from './send-event-webhooks.ts'
import { NOT_FAILING, type Webhook, type WebhookId } from './webhook.ts'
import type { NewWebhookBody, WebhookBody } from './webhook-schema.ts'

const contextOf = ({ clock, ...ctx }: FeedbackContext): ReceiverContext => ({ ...ctx, now: clock.now })

export function createWebhook(
  ctx: FeedbackContext,
  appId: AppId,
  body: NewWebhookBody,
  by: RequestOrigin,
): Promise<WithSecret<Webhook>> {
  const kinds = [...new Set(body.kinds)]
  const fields = {
    url: readWebhookUrl(body.url),
    kinds,
    disabledAt: null,
    disabledReason: null,
    ...NOT_FAILING,
    dropped: 0,
  }
  return eventReceivers.create(contextOf(ctx), appId, fields, by, { kinds })
}

/** Fields that are left out stay unchanged. A new address, or enabling the webhook, clears the record of failures. */
export function changeWebhook(
  ctx: FeedbackContext,
  appId: AppId,
  id: WebhookId,
  { url, kinds, enabled }: WebhookBody,
  by: RequestOrigin,
): Promise<Webhook> {
  return eventReceivers.change(contextOf(ctx), appId, id, by, {
    fields: Object.entries({ url, kinds, enabled }).flatMap(([name, value]) => (value === undefined ? [] : [name])),
    edit: (before, now) => ({
      ...before,
      ...(url !== undefined && { url: readWebhookUrl(url) }),
      ...(kinds && { kinds: [...new Set(kinds)] }),
      ...(enabled === true && { disabledAt: null, disabledReason: null }),
      ...(enabled === false && before.disabledAt === null && { disabledAt: now, disabledReason: 'switched off' }),
      ...((enabled || (url !== undefined && url !== before.url)) && NOT_FAILING),
    }),
    async onChanged(db, after) {
      // Events that wait for a disabled webhook are dropped instead of being kept for later.
      if (after.disabledAt !== null) await enqueueEvents(ctx, db, appId, id)
    },
  })
}

export const rotateWebhookSecret = (ctx: FeedbackContext, appId: AppId, id: WebhookId, by: RequestOrigin) =>
  eventReceivers.rotateSecret(contextOf(ctx), appId, id, by)

export const removeWebhook = (ctx: FeedbackContext, appId: AppId, id: WebhookId, by: RequestOrigin): Promise<void> =>
  eventReceivers.remove(contextOf(ctx), appId, id, by, (db) => enqueueEvents(ctx, db, appId, id))

export const getWebhook = (ctx: FeedbackContext, appId: AppId, id: WebhookId): Promise<Webhook> =>
  eventReceivers.get(ctx, appId, id)

export const testWebhook = (ctx: FeedbackContext, appId: AppId, id: WebhookId) =>
  eventReceivers.sendTest(contextOf(ctx), appId, id)

const enqueueEvents = async ({ clock, newId }: FeedbackContext, db: Db, appId: AppId, id: WebhookId): Promise<void> => {
  await createQueue({ clock, newId }).enqueue(db, [{ appId, name: SEND_EVENT_WEBHOOKS, key: id }])
}
