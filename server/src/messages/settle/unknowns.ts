// Deliveries with unknown outcomes. They are never sent again automatically; an operator who knows more may resend or
// close them.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import { type AppId, newId, type SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts, transitionsFrom } from '../counts/store.ts'
import { CLOSE_COUNT_PART } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'
import { deliverJobs } from '../jobs.ts'
import { lifetimeSecondsOf } from '../lifetime.ts'
import type { MessageId } from '../message.ts'
import { emitFailedEvents } from './emit-failed.ts'
import { lockMessage, reopenMessage } from './store.ts'
import {
  clearUnknownsReported,
  closeUnknownRows,
  type DeliveryCursor,
  findUnknown,
  resendUnknownRows,
  type UnknownDelivery,
} from './unknown-store.ts'

export type { UnknownDelivery } from './unknown-store.ts'

type UnknownsContext = Pick<Engine, 'db' | 'clock' | 'queue'>

/** In the order of subscriptions and runs, after the cursor. */
export const listUnknown = (
  { db }: Pick<UnknownsContext, 'db'>,
  appId: AppId,
  messageId: MessageId,
  limit: number,
  after?: DeliveryCursor,
): Promise<UnknownDelivery[]> => findUnknown(db, appId, messageId, limit, after)

/** All unknown deliveries of the message, or only those to these subscriptions. */
export type UnknownSelection = { messageId: MessageId; subscriptionIds?: readonly SubscriptionId[] }

/** Makes deliveries pending again, due at once, with a full lifetime from now. Returns how many. */
export function resendUnknown(
  ctx: UnknownsContext,
  appId: AppId,
  { messageId, subscriptionIds }: UnknownSelection,
  by: RequestOrigin,
) {
  const now = ctx.clock.now()
  return ctx.db.transaction(async (db) => {
    const message = await lockMessage(db, appId, messageId)
    if (!message?.expandAt || message.state === 'canceled') return 0
    const expiresAt = new Date(now.getTime() + lifetimeSecondsOf(message.options) * 1_000)
    const rows = await resendUnknownRows(
      db,
      appId,
      { messageId, expandAt: message.expandAt },
      subscriptionIds,
      now,
      expiresAt,
    )
    if (rows.length === 0) return 0
    await changeCounts(
      db,
      appId,
      CLOSE_COUNT_PART,
      rows.flatMap((row) => transitionsFrom({ state: 'unknown', reason: row.countedReason ?? '' }, [row])),
    )
    await reopenMessage(db, appId, messageId)
    await clearUnknownsReported(db, appId, messageId)
    await ctx.queue.enqueue(
      db,
      deliverJobs(
        appId,
        rows.map(({ shard }) => ({ shard, dueAt: now })),
      ),
    )
    await insertAuditEntry(db, appId, by, 'deliveries.resend', messageId, rows.length, now)
    return rows.length
  })
}

/** Marks deliveries as failed, on the assumption that they did not arrive. Returns how many. */
export function closeUnknown(
  ctx: Pick<UnknownsContext, 'db' | 'clock'>,
  appId: AppId,
  { messageId, subscriptionIds }: UnknownSelection,
  by: RequestOrigin,
) {
  const now = ctx.clock.now()
  return ctx.db.transaction(async (db) => {
    const message = await lockMessage(db, appId, messageId)
    if (!message?.expandAt) return 0
    const rows = await closeUnknownRows(db, appId, { messageId, expandAt: message.expandAt }, subscriptionIds, now)
    if (rows.length === 0) return 0
    await changeCounts(
      db,
      appId,
      CLOSE_COUNT_PART,
      rows.flatMap((row) => transitionsFrom({ state: 'unknown', reason: row.countedReason ?? '' }, [row])),
    )
    await emitFailedEvents(db, appId, rows, now)
    await insertAuditEntry(db, appId, by, 'deliveries.close', messageId, rows.length, now)
    return rows.length
  })
}

const insertAuditEntry = (
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  targetId: MessageId,
  count: number,
  at: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'message', targetId, detail: { count } }],
    at,
  )
