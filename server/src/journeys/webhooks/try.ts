// A request to try a webhook with: it is about nobody, and whatever comes of it changes nothing.

import { sendTest, type Tried } from '../../feedback/try-webhook.ts'
import type { AppId } from '../../lib/ids.ts'
import type { JourneysContext } from '../context.ts'
import { findWebhook } from './store.ts'
import { type JourneyWebhookId, journeyWebhookNotFound, signingSecrets } from './webhook.ts'

export async function tryWebhook(ctx: JourneysContext, appId: AppId, id: JourneyWebhookId): Promise<Tried> {
  const webhook = await findWebhook(ctx.db, appId, id)
  if (!webhook) throw journeyWebhookNotFound()
  const now = ctx.now()
  return sendTest(ctx, appId, webhook, signingSecrets(ctx.secrets, appId, webhook, now), now)
}
