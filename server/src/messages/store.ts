// SQL that reads, lists and cancels messages. accept/store.ts stores them; deliveries and their counts have stores of
// their own.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { emptySql, sql } from '../storage/sql.ts'
import { lockForCancel } from './cancel-lock.ts'
import type { Message, MessageId } from './message.ts'

const messageColumns = sql`m.id, m.channel, m.kind, m.is_listed, m.lane, m.state, m.name, m.template_id, m.content,
  coalesce(to_jsonb(m.email_html), m.email_html_by_language) as email_html,
  m.options, m.queued_at, m.send_after, m.expand_at, m.expanded_to, m.expanded_count, m.completed_at, m.canceled_at`

export async function findMessage(db: Db, appId: AppId, id: MessageId): Promise<Message | undefined> {
  const [message] = await db.query<Message>(sql`
    select ${messageColumns}, m.audience from messages m where m.app_id = ${appId} and m.id = ${id}`)
  return message
}

/** Blocks everybody who changes the message or marks deliveries of it as being sent. */
export async function lockMessage(db: Db, appId: AppId, id: MessageId) {
  await lockForCancel(db, [id])
  const [message] = await db.query<Pick<Message, 'id' | 'state' | 'isListed'>>(sql`
    select m.id, m.state, m.is_listed from messages m where m.app_id = ${appId} and m.id = ${id} for update`)
  return message
}

/** Locks the unlisted messages that may still send something, in the order of their ids. */
export async function lockUnlistedMessages(db: Db, appId: AppId, ids: readonly MessageId[]): Promise<MessageId[]> {
  await lockForCancel(db, ids)
  const messages = await db.query<{ id: MessageId }>(sql`
    select m.id from messages m
    where m.app_id = ${appId} and m.id = any(${ids}::uuid[]) and not m.is_listed and m.state not in ('done', 'canceled')
    order by m.id
    for update`)
  return messages.map(({ id }) => id)
}

export const markCanceled = (db: Db, appId: AppId, ids: readonly MessageId[], now: Date) =>
  db.query(sql`
    update messages set state = 'canceled', canceled_at = ${now}, completed_at = null
    where app_id = ${appId} and id = any(${ids}::uuid[])`)

export type MessageCount = { messageId: MessageId; platform: string; state: string; reason: string; count: number }

export const findMessageCounts = (db: Db, appId: AppId, ids: readonly MessageId[]) =>
  db.query<MessageCount>(sql`
    select c.message_id, c.platform, c.state, c.reason, sum(c.count)::bigint as count
    from message_counts c
    where c.app_id = ${appId} and c.message_id = any(${ids}::uuid[])
    group by c.message_id, c.platform, c.state, c.reason
    having sum(c.count) <> 0
    order by c.message_id, c.platform, c.state, c.reason`)

export type MessageFilter = { kind?: number | undefined; templateId?: string | undefined }
/** The last message of the previous page; without an id, everything up to this time has been seen. */
export type MessageCursor = { sendAfter: Date; id: MessageId | undefined }

const listed = ({ kind, templateId }: MessageFilter) => sql`m.is_listed
  ${kind === undefined ? emptySql : sql`and m.kind = ${kind}::smallint`}
  ${templateId === undefined ? emptySql : sql`and m.template_id = ${templateId}::uuid`}`

/** Lists leave out the recipients of bulk messages, of whom there may be thousands. */
const shortAudience = sql`
  case when m.lane = 'bulk' then m.audience - 'ids' - 'given' - 'aliases' else m.audience end as audience`

export async function countMessages(db: Db, appId: AppId, filter: MessageFilter): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql`
    select count(*) as total from messages m where m.app_id = ${appId} and ${listed(filter)}`)
  return row?.total ?? 0
}

/** Newest first. */
export const findNewestMessages = (db: Db, appId: AppId, filter: MessageFilter, limit: number, offset: number) =>
  db.query<Message>(sql`
    select ${messageColumns}, ${shortAudience}
    from messages m
    where m.app_id = ${appId} and ${listed(filter)}
    order by m.queued_at desc, m.id desc
    limit ${limit} offset ${offset}`)

/** In the order of `send_after`, after the cursor. */
export const findMessagesAfter = (
  db: Db,
  appId: AppId,
  filter: MessageFilter,
  { sendAfter, id }: MessageCursor,
  limit: number,
) =>
  db.query<Message>(sql`
    select ${messageColumns}, ${shortAudience}
    from messages m
    where m.app_id = ${appId} and ${listed(filter)}
      and ${
        id === undefined
          ? sql`m.send_after > ${sendAfter}::timestamptz`
          : sql`m.send_after >= ${sendAfter}::timestamptz and (m.send_after, m.id) > (${sendAfter}::timestamptz, ${id}::uuid)`
      }
    order by m.send_after, m.id
    limit ${limit}`)
