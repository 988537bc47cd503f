// Makers of messages and deliveries as they stand after sending, and what was counted of them.

import { newId } from '../src/lib/ids.ts'
import { addMonths } from '../src/storage/partitions.ts'
import { sql } from '../src/storage/sql.ts'
import type { TestApp } from './app.ts'

export type MadeMessage = { id: string; expandAt: Date }

/** A message of which deliveries were made at this time. */
export async function aMessage(app: TestApp, expandAt: Date, { appId = app.tenant.id, channel = 'push' } = {}) {
  const id = newId()
  await addMonths(app.db, 'deliveries', expandAt, expandAt)
  await app.db.query(sql`
    insert into messages (app_id, id, channel, lane, state, audience, content, queued_at, send_after, expand_at)
    values (${appId}, ${id}, ${channel}, 'bulk', 'sending', '{}', '{}', ${expandAt}, ${expandAt}, ${expandAt})`)
  return { id, expandAt }
}

export type DeliveryDraft = {
  appId?: string
  subscriptionId?: string
  userId?: string
  platform?: string
  state?: string
  providerRef?: string | null
}

/** Of this message to somebody; answers the subscription. */
export async function aDelivery(app: TestApp, message: MadeMessage, draft: DeliveryDraft = {}): Promise<string> {
  const { appId = app.tenant.id, subscriptionId = newId(), userId = newId(), platform = 'ChromePush' } = draft
  const { state = 'sent', providerRef = null } = draft
  const settledAt = state === 'pending' || state === 'sending' ? null : message.expandAt
  await app.db.query(sql`
    insert into deliveries (app_id, expand_at, message_id, subscription_id, user_id, platform, line, state, due_at, expires_at,
      provider_ref, settled_at)
    values (${appId}, ${message.expandAt}, ${message.id}, ${subscriptionId}, ${userId}, ${platform}, 'bulk/web-push/0',
      ${state}, ${message.expandAt}, ${message.expandAt}, ${providerRef}, ${settledAt})`)
  return subscriptionId
}

/** `{ 'ChromePush received': 2 }`. */
export async function factsOf(app: TestApp, message: MadeMessage): Promise<Record<string, number>> {
  const found = await app.db.query<{ platform: string; state: string; count: number }>(sql`
    select platform, state, sum(count) as count
    from message_counts
    where app_id = ${app.tenant.id} and message_id = ${message.id}
    group by platform, state`)
  return Object.fromEntries(found.map(({ platform, state, count }) => [`${platform} ${state}`, count]))
}
