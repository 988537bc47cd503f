// Journey webhooks, created, changed and deleted as all receivers of signed webhooks are.

import type { RequestOrigin } from '../../apps/audit/actor.ts'
import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { readWebhookUrl } from '../../sending/signed-receivers.ts'
import type { JourneysContext } from '../context.ts'
import { isUsedByLiveJourney } from '../store.ts'
import { journeyReceivers } from './receivers.ts'
import type { NewWebhookBody, WebhookBody } from './schema.ts'
import type { JourneyWebhook, JourneyWebhookId } from './webhook.ts'

export const createWebhook = (ctx: JourneysContext, appId: AppId, { name, url }: NewWebhookBody, by: RequestOrigin) =>
  journeyReceivers.create(ctx, appId, { name: readName(name), url: readWebhookUrl(url) }, by)

/** Fields that are left out stay as they are. */
export function changeWebhook(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyWebhookId,
  { name, url }: WebhookBody,
  by: RequestOrigin,
): Promise<JourneyWebhook> {
  return journeyReceivers.change(ctx, appId, id, by, {
    fields: Object.entries({ name, url }).flatMap(([field, value]) => (value === undefined ? [] : [field])),
    edit: (before) => ({
      ...before,
      ...(name !== undefined && { name: readName(name) }),
      ...(url !== undefined && { url: readWebhookUrl(url) }),
    }),
  })
}

/** Refused while users are on their way to it. */
export const removeWebhook = (
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyWebhookId,
  by: RequestOrigin,
): Promise<void> =>
  journeyReceivers.remove(ctx, appId, id, by, async (db) => {
    if (await isUsedByLiveJourney(db, appId, 'webhook', id)) throw invalid('Webhook is used by an active journey.')
  })

/** The schema limits the length. */
function readName(name: string): string {
  if (name.trim() === '') throw invalid('name must not be empty', { field: 'name' })
  return name
}
