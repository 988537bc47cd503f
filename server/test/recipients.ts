// Makers for tests about messages that take recipients while they are open.

import type { AppId } from '../src/lib/ids.ts'
import { newId } from '../src/lib/ids.ts'
import type { Engine } from '../src/messages/engine/engine.ts'
import type { Message } from '../src/messages/message.ts'
import { addRecipients, openMessage, type PreparedMessage, type Recipient } from '../src/messages/recipients.ts'
import type { Db } from '../src/storage/db.ts'
import { sql } from '../src/storage/sql.ts'

const DAY_MS = 86_400_000

type Draft = Partial<Pick<Message, 'channel' | 'content' | 'lane'>> & { options?: Partial<Message['options']> }

/** One that is open for a day. */
export function anOpenMessage({ db, clock }: Pick<Engine, 'db' | 'clock'>, appId: AppId, draft: Draft = {}) {
  const { channel = 'push', content = { contents: { en: 'Bells' } }, lane = 'bulk', options } = draft
  const now = clock.now()
  const prepared: PreparedMessage = {
    ...{ channel, content, templateId: null, emailHtml: null },
    options: { ttl: 259_200, priority: 10, ...options },
  }
  const opening = { name: null, lane, until: new Date(now.getTime() + DAY_MS) }
  return db.transaction((db) => openMessage({ newId }, db, appId, prepared, opening, now))
}

/** Each in a run of its own, unless told. */
export function add(
  { db, clock, queue }: Pick<Engine, 'db' | 'clock' | 'queue'>,
  appId: AppId,
  messageId: string,
  users: readonly { userId: string; runId?: string }[],
): Promise<boolean> {
  const list = users.map(({ userId, runId = newId() }): Recipient => ({ userId, runId }))
  return db.transaction((db) => addRecipients({ queue }, db, appId, { messageId, lane: 'bulk' }, list, clock.now()))
}

export async function countWaiting(db: Db, appId: AppId, messageId: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(sql`
    select count(*) as n from message_recipients where app_id = ${appId} and message_id = ${messageId}`)
  return row?.n ?? 0
}

export type RunDelivery = {
  subscriptionId: string
  runId: string
  userId: string
  state: string
  dueAt: Date
  expiresAt: Date
  expandAt: Date
  receivedAt: Date | null
  clickedAt: Date | null
}

export const runDeliveries = (db: Db, appId: AppId, messageId: string) =>
  db.query<RunDelivery>(sql`
    select subscription_id, run_id, user_id, state, due_at, expires_at, expand_at, received_at, clicked_at from deliveries
    where app_id = ${appId} and message_id = ${messageId}
    order by due_at, subscription_id, run_id`)
