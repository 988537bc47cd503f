// Events for failures that no provider reported.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { DeliveryEvent } from '../feedback/delivery-event.ts'
import { findWantedEvents, insertDeliveryEvents } from '../feedback/delivery-event-store.ts'

type Failed = Pick<DeliveryEvent, 'messageId' | 'subscriptionId' | 'userId' | 'platform'> & { reason: string | null }

/** Call it in the transaction that ends the deliveries. */
export async function emitFailedEvents(db: Db, appId: AppId, failed: readonly Failed[], at: Date) {
  if (failed.length === 0 || !(await findWantedEvents(db, appId)).has('failed')) return
  const events = failed.map(
    ({ messageId, subscriptionId, userId, platform, reason }): DeliveryEvent => ({
      ...{ kind: 'failed', at, messageId, subscriptionId, userId, platform },
      reason: reason ?? undefined,
    }),
  )
  await insertDeliveryEvents(db, appId, events)
}
