// Create, update and delete event webhooks, and give them a new secret. Each change leaves a line in the audit log.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries, lockApp } from '../apps/store.ts'
import { AppError, appNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { newWebhookSecret } from '../lib/secrets.ts'
import { rotated } from '../lib/webhook-secrets.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { FeedbackContext } from './context.ts'
import { TELL_EVENTS } from './send-event-webhooks.ts'
import { NOT_FAILING, readWebhookUrl, type Webhook, type WebhookId, webhookNotFound, webhookSecret } from './webhook.ts'
import type { NewWebhookBody, WebhookBody } from './webhook-schema.ts'
import { deleteWebhook, findWebhooks, insertWebhook, lockWebhook, updateWebhook } from './webhook-store.ts'

const MOST = 20

/** The secret is told this once. */
export function createWebhook(
  ctx: FeedbackContext,
  appId: AppId,
  body: NewWebhookBody,
  by: RequestOrigin,
): Promise<{ webhook: Webhook; secret: string }> {
  const now = ctx.clock.now()
  const secret = newWebhookSecret()
  const id = ctx.newId()
  const webhook: Webhook = {
    id,
    url: readWebhookUrl(body.url),
    kinds: [...new Set(body.kinds)],
    secret: webhookSecret(ctx.secrets, appId, id).seal(secret),
    previousSecret: null,
    previousUntil: null,
    disabledAt: null,
    disabledReason: null,
    ...NOT_FAILING,
    dropped: 0,
    createdAt: now,
    updatedAt: now,
  }
  return ctx.db.transaction(async (db) => {
    // Counted behind the lock of the app: of several at once only as many are made as fit.
    if (!(await lockApp(db, appId))) throw appNotFound()
    if ((await findWebhooks(db, appId)).length >= MOST)
      throw new AppError('conflict', {
        code: 'event-webhook-1',
        title: `An app can have at most ${MOST} event webhooks`,
      })
    await insertWebhook(db, appId, webhook)
    await note(ctx, db, appId, by, 'event_webhook.create', id, { kinds: webhook.kinds })
    return { webhook, secret }
  })
}

/** What is left out stays as it is. Another address, or being enabled, forgets what went wrong. */
export function changeWebhook(
  ctx: FeedbackContext,
  appId: AppId,
  id: WebhookId,
  { url, kinds, enabled }: WebhookBody,
  by: RequestOrigin,
): Promise<Webhook> {
  const now = ctx.clock.now()
  return changed(ctx, appId, id, async (db, before) => {
    const after: Webhook = {
      ...before,
      ...(url !== undefined && { url: readWebhookUrl(url) }),
      ...(kinds && { kinds: [...new Set(kinds)] }),
      ...(enabled === true && { disabledAt: null, disabledReason: null }),
      ...(enabled === false && before.disabledAt === null && { disabledAt: now, disabledReason: 'switched off' }),
      ...((enabled || (url !== undefined && url !== before.url)) && NOT_FAILING),
      updatedAt: now,
    }
    const fields = Object.entries({ url, kinds, enabled }).flatMap(([name, value]) =>
      value === undefined ? [] : [name],
    )
    await note(ctx, db, appId, by, 'event_webhook.update', id, { fields })
    // What waits for one that is switched off is not kept for later.
    if (after.disabledAt !== null) await enqueueTelling(ctx, db, appId, id)
    return after
  })
}

export async function rotateWebhookSecret(
  ctx: FeedbackContext,
  appId: AppId,
  id: WebhookId,
  by: RequestOrigin,
): Promise<{ webhook: Webhook; secret: string }> {
  const now = ctx.clock.now()
  const secret = newWebhookSecret()
  const webhook = await changed(ctx, appId, id, async (db, before) => {
    await note(ctx, db, appId, by, 'event_webhook.rotate', id, {})
    return {
      ...before,
      ...rotated(before, webhookSecret(ctx.secrets, appId, id).seal(secret), now),
      updatedAt: now,
    }
  })
  return { webhook, secret }
}

export const removeWebhook = (ctx: FeedbackContext, appId: AppId, id: WebhookId, by: RequestOrigin): Promise<void> =>
  ctx.db.transaction(async (db) => {
    if (!(await deleteWebhook(db, appId, id))) throw webhookNotFound()
    await note(ctx, db, appId, by, 'event_webhook.delete', id, {})
    await enqueueTelling(ctx, db, appId, id)
  })

const changed = (
  { db }: FeedbackContext,
  appId: AppId,
  id: WebhookId,
  change: (db: Db, before: Webhook) => Promise<Webhook>,
): Promise<Webhook> =>
  db.transaction(async (db) => {
    const before = await lockWebhook(db, appId, id)
    if (!before) throw webhookNotFound()
    const after = await change(db, before)
    await updateWebhook(db, appId, after)
    return after
  })

const enqueueTelling = ({ clock, newId }: FeedbackContext, db: Db, appId: AppId, id: WebhookId) =>
  createQueue({ clock, newId }).enqueue(db, [{ appId, name: TELL_EVENTS, key: id }])

const note = (
  { clock, newId }: FeedbackContext,
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  targetId: WebhookId,
  detail: Record<string, unknown>,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'event_webhook', targetId, detail }],
    clock.now(),
  )
