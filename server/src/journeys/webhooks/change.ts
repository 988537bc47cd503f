// Create, update and delete the receivers of send_webhook, and give them a new secret. Each change leaves a line in the audit log.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries, lockApp } from '../../apps/store.ts'
import { readWebhookUrl } from '../../feedback/webhook.ts'
import { AppError, appNotFound, invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { newWebhookSecret } from '../../lib/secrets.ts'
import { rotated } from '../../lib/webhook-secrets.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { isUsedByLiveJourney } from '../store.ts'
import type { NewWebhookBody, WebhookBody } from './schema.ts'
import { deleteWebhook, findWebhooks, insertWebhook, lockWebhook, updateWebhook } from './store.ts'
import { type JourneyWebhook, type JourneyWebhookId, journeyWebhookNotFound, webhookSecret } from './webhook.ts'

const MOST = 100

/** The secret is told this once. */
export function createWebhook(ctx: JourneysContext, appId: AppId, body: NewWebhookBody, by: RequestOrigin) {
  const now = ctx.now()
  const secret = newWebhookSecret()
  const id = ctx.newId()
  const webhook: JourneyWebhook = {
    id,
    name: readName(body.name),
    url: readWebhookUrl(body.url),
    secret: webhookSecret(ctx.secrets, appId, id).seal(secret),
    previousSecret: null,
    previousUntil: null,
    createdAt: now,
    updatedAt: now,
  }
  return ctx.db.transaction(async (db) => {
    // Counted behind the lock of the app: of several at once only as many are made as fit.
    if (!(await lockApp(db, appId))) throw appNotFound()
    if ((await findWebhooks(db, appId)).length >= MOST)
      throw new AppError('conflict', {
        code: 'journey-webhook-limit',
        title: `An app can have at most ${MOST} journey webhooks`,
      })
    await insertWebhook(db, appId, webhook)
    await note(ctx, db, appId, by, 'journey_webhook.create', id, { name: webhook.name })
    return { webhook, secret }
  })
}

/** What is left out stays as it is. */
export function changeWebhook(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyWebhookId,
  { name, url }: WebhookBody,
  by: RequestOrigin,
): Promise<JourneyWebhook> {
  return changed(ctx, appId, id, async (db, before) => {
    const after: JourneyWebhook = {
      ...before,
      ...(name !== undefined && { name: readName(name) }),
      ...(url !== undefined && { url: readWebhookUrl(url) }),
    }
    const fields = Object.entries({ name, url }).flatMap(([field, value]) => (value === undefined ? [] : [field]))
    await note(ctx, db, appId, by, 'journey_webhook.update', id, { name: after.name, fields })
    return after
  })
}

export async function rotateWebhookSecret(ctx: JourneysContext, appId: AppId, id: JourneyWebhookId, by: RequestOrigin) {
  const secret = newWebhookSecret()
  const webhook = await changed(ctx, appId, id, async (db, before) => {
    await note(ctx, db, appId, by, 'journey_webhook.rotate', id, { name: before.name })
    return {
      ...before,
      ...rotated(before, webhookSecret(ctx.secrets, appId, id).seal(secret), ctx.now()),
    }
  })
  return { webhook, secret }
}

/** Not while users are on their way to it. */
export const removeWebhook = (
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyWebhookId,
  by: RequestOrigin,
): Promise<void> =>
  ctx.db.transaction(async (db) => {
    const name = await deleteWebhook(db, appId, id)
    if (name === undefined) throw journeyWebhookNotFound()
    if (await isUsedByLiveJourney(db, appId, 'webhook', id)) throw invalid('Webhook is used by an active journey.')
    await note(ctx, db, appId, by, 'journey_webhook.delete', id, { name })
  })

const changed = (
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyWebhookId,
  change: (db: Db, before: JourneyWebhook) => Promise<JourneyWebhook>,
): Promise<JourneyWebhook> =>
  ctx.db.transaction(async (db) => {
    const before = await lockWebhook(db, appId, id)
    if (!before) throw journeyWebhookNotFound()
    const after = { ...(await change(db, before)), updatedAt: ctx.now() }
    await updateWebhook(db, appId, after)
    return after
  })

/** The schema has counted the characters. */
function readName(name: string): string {
  if (name.trim() === '') throw invalid('name must not be empty', { field: 'name' })
  return name
}

const note = (
  { now, newId }: JourneysContext,
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  targetId: JourneyWebhookId,
  detail: Record<string, unknown>,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'journey_webhook', targetId, detail }],
    now(),
  )
