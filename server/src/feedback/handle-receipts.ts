// Matches receipts with the deliveries that they are about.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { isStorable } from '../lib/text.ts'
import type { SmsReceipt } from '../messages/feedback/receipt.ts'
import { deleteExpiredReceipts, findWaitingReceipts } from '../messages/feedback/receipt-store.ts'
import { recordReceipts } from '../messages/feedback/record-receipts.ts'
import type { RecordRunActions } from '../messages/feedback/run-actions.ts'
import { OPTED_OUT } from '../messages/reasons.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { ChangeUsers } from '../users/change.ts'
import { markUnreachable } from '../users/subscriptions/opt-out.ts'
import type { SmsStatusReport } from './inbound-sms.ts'

export const MATCH_RECEIPTS = 'feedback.match-receipts'

/** Resolves when the receipt is recorded, or stored to be recorded later. */
export type HandleReceipt = (appId: AppId, receipt: SmsStatusReport) => Promise<void>

type ReceiptParts = {
  db: Db
  clock: Clock
  newId: NewId
  change: ChangeUsers
  recordRunActions?: RecordRunActions | undefined
}

/**
 * The provider's answer to a send is recorded moments after it arrives, so an early receipt soon finds its delivery.
 */
const FIRST_RETRY_MS = 5_000
const RETRY_INTERVAL_MS = 60_000
/** An SMS that somebody else sends through the same provider account never has a delivery. */
const MAX_WAIT_MS = 3_600_000
const AT_ONCE = 500
const LONGEST_REFERENCE = 128

export function createHandleReceipt(parts: ReceiptParts & { merger: Merger }): HandleReceipt {
  const submit = parts.merger.merged<SmsReceipt, void>({
    name: 'feedback.take-receipts',
    async run(appId, receipts) {
      await saveReceipts(parts, appId, receipts, FIRST_RETRY_MS)
      return receipts.map(() => ({ value: undefined }))
    },
  })
  return async (appId, { id, state, reason }) => {
    if (state === 'passed-on' || id.length > LONGEST_REFERENCE || !isStorable(id)) return
    await submit(appId, { reference: id, state, reason })
  }
}

/** Receipts without a delivery are stored and retried after `retryMs`. */
async function saveReceipts(parts: ReceiptParts, appId: AppId, receipts: readonly SmsReceipt[], retryMs: number) {
  const { db, clock, newId, change, recordRunActions } = parts
  const now = clock.now()
  const gone = await db.transaction(async (db) => {
    const noted = await recordReceipts(db, appId, receipts, now, recordRunActions)
    const runAt = new Date(now.getTime() + retryMs)
    const job = { appId, name: MATCH_RECEIPTS, key: 'waiting', runAt }
    if (noted.waiting > 0) await createQueue({ clock, newId }).enqueue(db, [job])
    return noted.gone
  })
  // This runs after the commit. If it is lost, the next SMS to the number reports the same again.
  await Promise.all(
    gone.map(({ subscriptionId, reason }) => markUnreachable(change, appId, subscriptionId, reason === OPTED_OUT)),
  )
}

/**
 * The job: retries receipts that arrived before their delivery was recorded, until it is found or an hour has passed.
 */
export async function matchReceipts(parts: ReceiptParts, appId: AppId): Promise<void> {
  await deleteExpiredReceipts(parts.db, appId, new Date(parts.clock.now().getTime() - MAX_WAIT_MS))
  for (let after = ''; ; ) {
    const receipts = await findWaitingReceipts(parts.db, appId, after, AT_ONCE)
    if (receipts.length > 0) await saveReceipts(parts, appId, receipts, RETRY_INTERVAL_MS)
    if (receipts.length < AT_ONCE) return
    after = receipts.at(-1)?.reference ?? ''
  }
}
