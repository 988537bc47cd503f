// Makers for tests about what became of messages: rows as sending leaves them.

import { gunzipSync } from 'node:zlib'
import { newId } from '../src/lib/ids.ts'
import { insertBatch } from '../src/messages/deliver/batch-store.ts'
import type { DeliveryState } from '../src/messages/delivery.ts'
import { type Audience, type MessageOptions, NO_RUN } from '../src/messages/message.ts'
import { addMonths } from '../src/storage/partitions.ts'
import { sql } from '../src/storage/sql.ts'
import type { TestApp } from './app.ts'

export type StoredMessage = { id: string; expandAt: Date | null }

type Fields = {
  channel?: string
  state?: string
  lane?: string
  audience?: Audience
  options?: Partial<MessageOptions>
  at?: Date
  expandAt?: Date | null
  expandedTo?: string | null
  appId?: string
}

/** A message that was expanded, unless it says that it was not. */
export async function aStoredMessage(app: TestApp, fields: Fields = {}): Promise<StoredMessage> {
  const { channel = 'push', state = 'sending', lane = 'bulk', at = new Date('2030-01-01T09:00:00Z') } = fields
  const { audience = { kind: 'segments', included: [], excluded: [] }, appId = app.tenant.id } = fields
  const expandAt = fields.expandAt === undefined ? at : fields.expandAt
  const options = { ttl: 259_200, priority: 10, ...fields.options }
  const id = newId()
  await app.db.query(sql`
    insert into messages (app_id, id, channel, lane, state, audience, content, options, queued_at, send_after, expand_at,
      expanded_to, canceled_at, completed_at)
    values (${appId}, ${id}, ${channel}, ${lane}, ${state}, ${JSON.stringify(audience)}, ${'{"contents":{"en":"Hello"}}'},
      ${JSON.stringify(options)}, ${at}, ${at}, ${expandAt}, ${fields.expandedTo ?? null},
      ${state === 'canceled' ? at : null}, ${state === 'done' ? at : null})`)
  return { id, expandAt }
}

export type DeliveryFields = {
  subscriptionId: string
  userId?: string
  platform?: string
  line?: string
  state?: DeliveryState
  reason?: string | null
  attempts?: number
  providerRef?: string | null
  receivedAt?: Date
  clickedAt?: Date
}

/** Deliveries of a message, and their counts. */
export async function deliver(app: TestApp, { id, expandAt }: StoredMessage, deliveries: DeliveryFields[]) {
  const at = expandAt as Date
  await addMonths(app.db, 'deliveries', at, at)
  for (const it of deliveries) {
    const { state = 'sent', reason = null, platform = 'AndroidPush', line = 'bulk/fcm/0' } = it
    const settledAt = state === 'pending' ? null : new Date(at.getTime() + 1_000)
    await app.db.query(sql`
      insert into deliveries (app_id, expand_at, message_id, subscription_id, user_id, platform, line, state, reason, due_at,
        expires_at, attempts, provider_ref, settled_at, received_at, clicked_at)
      values (${app.tenant.id}, ${at}, ${id}, ${it.subscriptionId}, ${it.userId ?? newId()}, ${platform}, ${line}, ${state},
        ${reason}, ${at}, ${new Date(at.getTime() + 86_400_000)}, ${it.attempts ?? 1}, ${it.providerRef ?? null}, ${settledAt},
        ${it.receivedAt ?? null}, ${it.clickedAt ?? null})`)
    await app.db.query(sql`
      insert into message_counts (app_id, message_id, platform, state, reason, part, count)
      values (${app.tenant.id}, ${id}, ${platform}, ${state}, ${reason ?? ''}, ${Number(line.slice(-1))}, 1)
      on conflict (app_id, message_id, platform, state, reason, part) do update set count = message_counts.count + 1`)
  }
}

/** As a worker has begun to send them. */
export const putUnderWay = (
  app: TestApp,
  { id, expandAt }: Pick<StoredMessage, 'id' | 'expandAt'>,
  subscriptionIds: string[],
) =>
  insertBatch(
    app.db,
    app.tenant.id,
    { shard: 'bulk/fcm/0', fence: 1 },
    subscriptionIds.map((subscriptionId) => ({
      ...{ expandAt: expandAt as Date, messageId: id, subscriptionId, runId: NO_RUN },
      ...{ providerRef: null, sendingDomain: null, inboxProvider: null },
    })),
  )

/** How many deliveries of a message there are, by state, as its counts have it. */
export async function countsOf(app: TestApp, { id }: { id: string }): Promise<Record<string, number>> {
  const rows = await app.db.query<{ state: string; count: number }>(sql`
    select state, sum(count)::bigint as count from message_counts
    where app_id = ${app.tenant.id} and message_id = ${id} group by state having sum(count) <> 0`)
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

/** A file as whoever has its address gets it. */
export async function fetchFile(address: string): Promise<{ status: number; text: string }> {
  const response = await fetch(address)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, text: response.status === 200 ? gunzipSync(bytes).toString() : bytes.toString() }
}

/** Without quotes in quotes: for files whose cells hold none. */
export const linesOf = (text: string) =>
  text
    .split('\r\n')
    .slice(0, -1)
    .map((line) => line.split(','))
