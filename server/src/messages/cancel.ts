// Cancel message: nothing more of it is sent. The message stays, and says that it was canceled.

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
 * Possible while it stops at least one delivery. Who begins a slice takes the message's row too, so that nothing begins to be sent
 * once this has committed; what waits is closed in the background.
 */
export function cancelMessage({ db, queue, now }: CancelContext, appId: AppId, id: MessageId): Promise<void> {
  return db.transaction(async (db) => {
    const message = await lockMessage(db, appId, id)
    // Those of journeys belong to their journey.
    if (!message?.isListed) throw messageNotFound()
    if (message.state === 'canceled') return
    const isExpanded = message.state === 'sending' || message.state === 'done'
    if (isExpanded && (await countWaiting(db, appId, id)) <= 0)
      throw invalid('Notification cannot be canceled: it has already been sent to all recipients.')
    await markCanceled(db, appId, [id], now())
    await queue.enqueue(db, [closeJob(appId, id)])
  })
}

/** Of messages that stand in no list, by whoever made them, in their transaction. What is over by then stays as it is. */
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
