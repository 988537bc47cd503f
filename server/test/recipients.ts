// Makers for tests about messages that take recipients while they are open.

import type { AppId } from '../src/lib/ids.ts'
import { newId } from '../src/lib/ids.ts'
import type { Engine } from '../src/messages/engine/types.ts'
import { addRecipients, findReadyProviders } from '../src/messages/expand/add-recipients.ts'
import type { RunRecipient } from '../src/messages/expand/candidates.ts'
import type { Message } from '../src/messages/message.ts'
import { openMessage, type PreparedMessage } from '../src/messages/recipients.ts'
import { readSending } from '../src/sending/read.ts'
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

export type Added = { userId: string; runId?: string; step?: number }

/** Each in a run of its own, unless told. */
export const recipientsOf = (messageId: string, users: readonly Added[]) =>
  users.map(({ userId, runId = newId(), step = 0 }): RunRecipient => ({ messageId, userId, runId, step }))

/** In a transaction of its own. */
export async function add(engine: Engine, appId: AppId, messageId: string, users: readonly Added[]): Promise<boolean> {
  const { db } = engine
  const ready = await findReadyProviders(engine, appId)
  return db.transaction((db) => addWith(engine, db, appId, ready, recipientsOf(messageId, users)))
}

/** In the caller's. */
export async function addWith(
  engine: Engine,
  db: Db,
  appId: AppId,
  ready: Awaited<ReturnType<typeof findReadyProviders>>,
  recipients: readonly RunRecipient[],
  part = 0,
): Promise<boolean> {
  const now = engine.clock.now()
  const { settings } = await readSending(db, appId, now)
  return addRecipients(engine, db, appId, recipients, { ready, settings, part }, now)
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
