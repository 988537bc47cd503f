// Messages to live activities go to the tokens of the activities, not to the subscriptions' own.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { DueDelivery, SentMessage } from '../deliver/store.ts'
import type { LiveActivity, MessageId } from '../message.ts'
import { type ActivityTokenName, findTokens } from './store.ts'

export const tokenNameOf = ({ event, id, type }: LiveActivity): ActivityTokenName =>
  event === 'start' ? { purpose: 'start', name: type ?? '' } : { purpose: 'update', name: id }

/** Deliveries of other messages stay as they are. */
export async function resolveActivityTokens(
  db: Db,
  appId: AppId,
  due: readonly DueDelivery[],
  messages: ReadonlyMap<MessageId, SentMessage>,
): Promise<DueDelivery[]> {
  const tokens = new Map<MessageId, Map<string, string>>()
  for (const { id, options } of messages.values()) {
    if (!options.activity) continue
    const ids = due.filter(({ messageId }) => messageId === id).map(({ subscriptionId }) => subscriptionId)
    tokens.set(id, await findTokens(db, appId, tokenNameOf(options.activity), ids))
  }
  return due.map((it) => {
    const found = tokens.get(it.messageId)
    return found ? { ...it, token: found.get(it.subscriptionId) ?? null } : it
  })
}
