// Records receipts of SMS with their deliveries and counts them; a delivery is counted under one fact at a time. A
// receipt can arrive before the provider's answer, and then waits for it.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type FeedbackDelivery, factCounter } from '../counts/fact.ts'
import type { DeliveryKey } from '../delivery.ts'
import type { DeliveryEvent } from './delivery-event.ts'
import { insertDeliveryEvents } from './delivery-event-store.ts'
import { factOf, outranks, type SmsReceipt, type StoredReceiptState, storedStateOf } from './receipt.ts'
import {
  deleteWaitingReceipts,
  insertWaitingReceipts,
  lockDeliveriesByReference,
  updateReceipts,
} from './receipt-store.ts'
import { addFacts } from './report-store.ts'
import { type RecordRunActions, reportRunActions } from './run-actions.ts'

const DAY_MS = 86_400_000
/** Message centres retry for a few days. */
const MAX_RECEIPT_AGE_MS = 8 * DAY_MS

export type RecordedReceipts = {
  /** How many receipts wait for their delivery. */
  waiting: number
  /** Deliveries whose number the provider calls gone. */
  gone: (FeedbackDelivery & { reason: string | undefined })[]
}

export function recordReceipts(
  db: Db,
  appId: AppId,
  receipts: readonly SmsReceipt[],
  now: Date,
  recordRunActions?: RecordRunActions,
): Promise<RecordedReceipts> {
  const strongest = new Map<string, SmsReceipt>()
  for (const receipt of receipts)
    if (outranks(receipt.state, strongest.get(receipt.reference)?.state ?? null))
      strongest.set(receipt.reference, receipt)

  return db.transaction(async (db) => {
    const since = new Date(now.getTime() - MAX_RECEIPT_AGE_MS)
    const found = await lockDeliveriesByReference(db, appId, [...strongest.keys()], since)
    const changed: (DeliveryKey & { receipt: StoredReceiptState })[] = []
    const events: DeliveryEvent[] = []
    const gone: RecordedReceipts['gone'] = []
    const arrived: FeedbackDelivery[] = []
    const counter = factCounter()
    for (const delivery of found) {
      const receipt = strongest.get(delivery.providerRef) as SmsReceipt
      const kept = storedStateOf(receipt)
      if (!outranks(kept, delivery.receipt)) continue
      const { expandAt, messageId, subscriptionId, runId, userId, platform } = delivery
      changed.push({ expandAt, messageId, subscriptionId, runId, receipt: kept })
      if (delivery.receipt !== null) counter.add(delivery, factOf[delivery.receipt], -1)
      counter.add(delivery, factOf[kept])
      const { reason } = receipt
      if (kept === 'delivered') arrived.push(delivery)
      if (kept !== 'unknown') events.push({ kind: kept, at: now, messageId, subscriptionId, userId, platform, reason })
      if (receipt.state === 'gone') gone.push({ ...delivery, reason })
    }
    if (changed.length > 0) await updateReceipts(db, appId, changed)
    const facts = counter.list()
    if (facts.length > 0) await addFacts(db, appId, facts)
    await insertDeliveryEvents(db, appId, events)
    await reportRunActions(recordRunActions, db, appId, arrived)

    const known = new Set(found.map(({ providerRef }) => providerRef))
    const early = [...strongest.values()].filter(({ reference }) => !known.has(reference))
    if (early.length > 0) await insertWaitingReceipts(db, appId, early, now)
    if (known.size > 0) await deleteWaitingReceipts(db, appId, [...known])
    return { waiting: early.length, gone }
  })
}
