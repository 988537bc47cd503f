// A request to try a webhook with: it says nothing, and whatever comes of it changes nothing.

import type { AppId } from '../lib/ids.ts'
import type { FeedbackContext } from './context.ts'
import { signingSecrets, type WebhookId, webhookNotFound } from './webhook.ts'
import { findWebhook } from './webhook-store.ts'

export type Tried = { success: boolean; reason: string | null }

export async function tryWebhook(ctx: FeedbackContext, appId: AppId, id: WebhookId): Promise<Tried> {
  const webhook = await findWebhook(ctx.db, appId, id)
  if (!webhook) throw webhookNotFound()
  const now = ctx.clock.now()
  return sendTest(ctx, appId, webhook, signingSecrets(ctx.secrets, appId, webhook, now), now)
}

/** To whatever receives webhooks of an app. */
export async function sendTest(
  { sendWebhook, newId }: Pick<FeedbackContext, 'sendWebhook' | 'newId'>,
  appId: AppId,
  { id, url }: { id: string; url: string },
  secrets: readonly string[],
  now: Date,
): Promise<Tried> {
  const data = { app_id: appId, webhook_id: id }
  const body = JSON.stringify({ type: 'test', timestamp: now.toISOString(), data })
  const outcome = await sendWebhook({ url, id: `test_${newId()}`, body, secrets })
  return outcome.kind === 'sent' ? { success: true, reason: null } : { success: false, reason: outcome.reason }
}
