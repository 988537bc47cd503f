// Receipts of texts are noted with their deliveries and counted, each delivery under one fact at a time. A receipt can be here
// before the answer to its text is: then it waits.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { type DeliveryKey, factCounter, type KnownDelivery } from '../counts/fact.ts'
import type { DeliveryEvent } from './delivery-event.ts'
import { insertDeliveryEvents } from './delivery-event-store.ts'
import { factOf, type KeptReceipt, keptAs, type Receipt, saysMore } from './receipt.ts'
import { deleteWaitingReceipts, insertWaitingReceipts, lockReferred, updateReceipts } from './receipt-store.ts'
import { addFacts } from './report-store.ts'
import { type NoteActions, tellActions } from './run-actions.ts'

const DAY_MS = 86_400_000
/** Message centres keep trying for a few days. */
const LONGEST_MS = 8 * DAY_MS

export type Noted = {
  /** How many wait for their delivery. */
  waiting: number
  /** Deliveries of which the provider says that their number leads nowhere. */
  gone: (KnownDelivery & { reason: string | undefined })[]
}

export function noteReceipts(
  db: Db,
  appId: AppId,
  receipts: readonly Receipt[],
  now: Date,
  noteActions?: NoteActions,
): Promise<Noted> {
  const strongest = new Map<string, Receipt>()
  for (const receipt of receipts)
    if (saysMore(receipt.state, strongest.get(receipt.reference)?.state ?? null))
      strongest.set(receipt.reference, receipt)

  return db.transaction(async (db) => {
    const since = new Date(now.getTime() - LONGEST_MS)
    const found = await lockReferred(db, appId, [...strongest.keys()], since)
    const changed: (DeliveryKey & { receipt: KeptReceipt })[] = []
    const events: DeliveryEvent[] = []
    const gone: Noted['gone'] = []
    const arrived: KnownDelivery[] = []
    const counter = factCounter()
    for (const delivery of found) {
      const receipt = strongest.get(delivery.providerRef) as Receipt
      const kept = keptAs(receipt)
      if (!saysMore(kept, delivery.receipt)) continue
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
    await tellActions(noteActions, db, appId, arrived)

    const known = new Set(found.map(({ providerRef }) => providerRef))
    const early = [...strongest.values()].filter(({ reference }) => !known.has(reference))
    if (early.length > 0) await insertWaitingReceipts(db, appId, early, now)
    if (known.size > 0) await deleteWaitingReceipts(db, appId, [...known])
    return { waiting: early.length, gone }
  })
}
