// Cancel message: nothing more of the message is sent. The message stays and is shown as canceled.

import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Queue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import { closeJob } from './jobs.ts'
import type { MessageId } from './message.ts'
import { countWaiting } from './settle/close-store.ts'
import { lockMessage, lockUnlistedMessages, markCanceled } from './store.ts'
import { messageNotFound } from './view.ts'

type CancelContext = { db: Db; queue: Queue; now: () => Date }

/**
 * Possible as long as it stops at least one delivery. Workers that start a batch also lock the message's row, so no new
 * batch is sent once this has committed. Pending deliveries are closed in the background.
 */
export function cancelMessage({ db, queue, now }: CancelContext, appId: AppId, id: MessageId): Promise<void> {
  return db.transaction(async (db) => {
    const message = await lockMessage(db, appId, id)
    // Messages of journeys can only be stopped through their journey.
    if (!message?.isListed) throw messageNotFound()
    if (message.state === 'canceled') return
    const isExpanded = message.state === 'sending' || message.state === 'done'
    if (isExpanded && (await countWaiting(db, appId, id)) <= 0)
      throw invalid('Notification cannot be canceled: it has already been sent to all recipients.')
    await markCanceled(db, appId, [id], now())
    await queue.enqueue(db, [closeJob(appId, id)])
  })
}

/**
 * Cancels unlisted messages, in the transaction of the caller that created them. Messages that are already over stay as
 * they are.
 */
export async function cancelMessages(
  db: Db,
  queue: Queue,
  appId: AppId,
  ids: readonly MessageId[],
  now: Date,
): Promise<void> {
  const open = await lockUnlistedMessages(db, appId, ids)
  if (open.length === 0) return
  await markCanceled(db, appId, open, now)
  await queue.enqueue(
    db,
    open.map((id) => closeJob(appId, id)),
  )
}
