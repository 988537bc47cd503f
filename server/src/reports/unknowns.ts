// Lists deliveries whose outcome is unknown, and lets whoever knows more resend or close them.

import type { RequestOrigin } from '../apps/audit/actor.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import {
  closeUnknown,
  listUnknown,
  resendUnknown,
  type UnknownDelivery,
  type UnknownSelection,
} from '../messages/settle/unknowns.ts'
import type { ReportsContext } from './context.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { getMessage } from './get-message.ts'
import type { UnknownsAnswer, UnknownsBody, UnknownsQuery } from './schema.ts'

export async function viewUnknowns(
  { db }: Pick<ReportsContext, 'db'>,
  appId: AppId,
  messageId: string,
  { limit, cursor }: UnknownsQuery,
): Promise<UnknownsAnswer> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  const { id } = await getMessage(db, appId, messageId)
  // One more row than is shown tells whether there is another page.
  const found = await listUnknown({ db }, appId, id, limit + 1, after)
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return { deliveries: page.map(unknownObject), next_cursor: last ? writeCursor(last) : null }
}

const unknownObject = (it: UnknownDelivery) => ({
  subscription_id: it.subscriptionId,
  onesignal_id: it.userId,
  type: it.platform,
  reason: it.reason,
  attempts: it.attempts,
  settled_at: it.settledAt.toISOString(),
})

/** What resending depends on. */
type ResolveUnknownsContext = Pick<ReportsContext, 'db' | 'clock' | 'queue'>

export async function resendUnknowns(
  ctx: ResolveUnknownsContext,
  appId: AppId,
  messageId: string,
  body: UnknownsBody,
  by: RequestOrigin,
): Promise<number> {
  const { id } = await getMessage(ctx.db, appId, messageId)
  return resendUnknown(ctx, appId, selectUnknowns(id, body), by)
}

export async function closeUnknowns(
  ctx: ResolveUnknownsContext,
  appId: AppId,
  messageId: string,
  body: UnknownsBody,
  by: RequestOrigin,
): Promise<number> {
  const { id } = await getMessage(ctx.db, appId, messageId)
  return closeUnknown(ctx, appId, selectUnknowns(id, body), by)
}

const selectUnknowns = (messageId: string, { subscription_ids }: UnknownsBody): UnknownSelection => ({
  messageId,
  ...(subscription_ids && { subscriptionIds: subscription_ids.map((id): SubscriptionId => id.toLowerCase()) }),
})
