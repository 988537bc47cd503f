// The deliveries of a message, page by page.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { getMessage } from './get-message.ts'
import type { DeliveryView } from './reported-delivery.ts'
import type { DeliveriesAnswer, DeliveriesQuery, DeliveryObject } from './schema.ts'
import { findDeliveriesAfter } from './store.ts'

/** A page examines at most this many deliveries, so that its cost is bounded when few of them match. */
const MOST_LOOKED_AT = 10_000

export async function listDeliveries(
  db: Db,
  appId: AppId,
  messageId: string,
  { state, limit, cursor }: DeliveriesQuery,
): Promise<DeliveriesAnswer> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  const { id, expandAt } = await getMessage(db, appId, messageId)
  if (expandAt === null) return { deliveries: [], next_cursor: null }
  const lookAt = state === undefined ? limit : MOST_LOOKED_AT
  const found = await findDeliveriesAfter(db, appId, { id, expandAt }, after, lookAt)
  const wanted = found.filter((it) => state === undefined || it.state === state)
  const page = wanted.slice(0, limit)
  const isWhole = wanted.length === page.length
  // When every examined delivery is either in the page or does not match, the next page starts after the last of them.
  const last = isWhole ? found.at(-1) : page.at(-1)
  const isEnd = isWhole && found.length < lookAt
  return { deliveries: page.map(deliveryObject), next_cursor: last && !isEnd ? writeCursor(last) : null }
}

export const deliveryObject = (it: DeliveryView): DeliveryObject => ({
  subscription_id: it.subscriptionId,
  onesignal_id: it.userId,
  type: it.platform,
  state: it.state,
  reason: it.reason,
  attempts: it.attempts,
  due_at: it.dueAt.toISOString(),
  expires_at: it.expiresAt.toISOString(),
  settled_at: it.settledAt?.toISOString() ?? null,
  received_at: it.receivedAt?.toISOString() ?? null,
  clicked_at: it.clickedAt?.toISOString() ?? null,
  delivered_at: it.deliveredAt?.toISOString() ?? null,
  opened_at: it.openedAt?.toISOString() ?? null,
  bounced_at: it.bouncedAt?.toISOString() ?? null,
  complained_at: it.complainedAt?.toISOString() ?? null,
  unsubscribed_at: it.unsubscribedAt?.toISOString() ?? null,
  inbox_provider: it.inboxProvider,
  provider_reference: it.providerRef,
})
