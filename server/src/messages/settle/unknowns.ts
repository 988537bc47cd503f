// Deliveries of which nobody knows whether they arrived. They are never sent again by themselves; somebody who knows more than we
// do may send them again, or close them.

import { actorOf, type Request } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import { type AppId, newId, type SubscriptionId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { changeCounts, moved } from '../counts/store.ts'
import { CLOSING_PART } from '../delivery.ts'
import type { Engine } from '../engine/engine.ts'
import { deliverJobs } from '../jobs.ts'
import { lifeSecondsOf } from '../lifetime.ts'
import type { MessageId } from '../message.ts'
import { tellFailed } from './emit-failed.ts'
import { lockMessage, reopenMessage } from './store.ts'
import {
  closeUnknownRows,
  findUnknown,
  forgetUnknownsTold,
  type Place,
  resendUnknownRows,
  type UnknownDelivery,
} from './unknown-store.ts'

export type { UnknownDelivery } from './unknown-store.ts'

type Context = Pick<Engine, 'db' | 'clock' | 'queue'>

/** In the order of their subscriptions and runs, after the one given. */
export const listUnknown = (
  { db }: Pick<Context, 'db'>,
  appId: AppId,
  messageId: MessageId,
  limit: number,
  after?: Place,
): Promise<UnknownDelivery[]> => findUnknown(db, appId, messageId, limit, after)

/** Which ones: of the message, all of them unless told. */
export type Unknowns = { messageId: MessageId; subscriptionIds?: readonly SubscriptionId[] }

/** Back into their lines, to be sent at once for as long as they would have lived from now. Answers how many. */
export function resendUnknown(ctx: Context, appId: AppId, { messageId, subscriptionIds }: Unknowns, by: Request) {
  const now = ctx.clock.now()
  return ctx.db.transaction(async (db) => {
    const message = await lockMessage(db, appId, messageId)
    if (!message?.expandAt || message.state === 'canceled') return 0
    const expiresAt = new Date(now.getTime() + lifeSecondsOf(message.options) * 1_000)
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
      CLOSING_PART,
      rows.flatMap((it) => moved({ state: 'unknown', reason: it.was ?? '' }, [it])),
    )
    await reopenMessage(db, appId, messageId)
    await forgetUnknownsTold(db, appId, messageId)
    await ctx.queue.enqueue(
      db,
      deliverJobs(
        appId,
        rows.map(({ line }) => ({ line, dueAt: now })),
      ),
    )
    await note(db, appId, by, 'deliveries.resend', messageId, rows.length, now)
    return rows.length
  })
}

/** It is taken that they did not arrive: failed. Answers how many. */
export function closeUnknown(
  ctx: Pick<Context, 'db' | 'clock'>,
  appId: AppId,
  { messageId, subscriptionIds }: Unknowns,
  by: Request,
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
      CLOSING_PART,
      rows.flatMap((it) => moved({ state: 'unknown', reason: it.was ?? '' }, [it])),
    )
    await tellFailed(db, appId, rows, now)
    await note(db, appId, by, 'deliveries.close', messageId, rows.length, now)
    return rows.length
  })
}

const note = (db: Db, appId: AppId, by: Request, action: string, targetId: MessageId, count: number, at: Date) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'message', targetId, detail: { count } }],
    at,
  )
