// All SQL on notices, and on the administrators who get them.

import type { AppId, Id } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { rows, sql } from '../storage/sql.ts'

export type AdministratorId = Id<'administrator'>
export type NoticeId = Id<'notice'>

export type Administrator = {
  id: AdministratorId
  email: string | null
  webhookUrl: string | null
  /** Sealed. */
  webhookSecret: string | null
  createdAt: Date
}

/** `listed`: only shown, never sent. `waiting`: to be sent by the queue. */
export type NoticeState = 'listed' | 'waiting' | 'sent' | 'failed'

export type NewNotice = {
  id: NoticeId
  kind: string
  detail: Record<string, unknown>
  administratorId: AdministratorId | null
  state: NoticeState
  /** How it is sent; null when it is only listed. */
  way: 'webhook' | 'mail' | null
}

export type Notice = NewNotice & { at: Date; settledAt: Date | null; reason: string | null }

/** In the order in which they were added. */
export const findAdministrators = (db: Db, appId: AppId) =>
  db.query<Administrator>(sql`
    select id, email, webhook_url, webhook_secret, created_at
    from app_administrators
    where app_id = ${appId}
    order by created_at, id`)

/** False when the app already has an administrator with the same address. */
export async function insertAdministrator(db: Db, appId: AppId, it: Administrator): Promise<boolean> {
  const added = await db.query(sql`
    insert into app_administrators (app_id, id, email, webhook_url, webhook_secret, created_at)
    select a.id, ${it.id}::uuid, ${it.email}::text, ${it.webhookUrl}::text, ${it.webhookSecret}::text,
      ${it.createdAt}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict do nothing
    returning id`)
  return added.length > 0
}

export async function deleteAdministrator(db: Db, appId: AppId, id: AdministratorId): Promise<boolean> {
  const deleted = await db.query(sql`
    delete from app_administrators where app_id = ${appId} and id = ${id} returning id`)
  return deleted.length > 0
}

export const insertNotices = (db: Db, appId: AppId, notices: readonly NewNotice[], at: Date) =>
  db.query(sql`
    insert into notices (app_id, id, at, kind, detail, administrator_id, state, way)
    select a.id, r.id, ${at}::timestamptz, r.kind, r.detail, r."administratorId", r.state, r.way
    from apps a cross join jsonb_to_recordset(${rows(notices)}::jsonb)
      as r(id uuid, kind text, detail jsonb, "administratorId" uuid, state text, way text)
    where a.id = ${appId}`)

/** Newest first; among the rows of one moment, the app's own comes first. */
export async function listNotices(
  db: Db,
  appId: AppId,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ total: number; notices: Notice[] }> {
  const found = await db.query<Notice & { total: number }>(sql`
    with counted as materialized (
      select count(*)::integer as total from notices where app_id = ${appId}
    ), page as materialized (
      select id, at, kind, detail, administrator_id, state, way, settled_at, reason
      from notices
      where app_id = ${appId}
      order by at desc, administrator_id nulls first, way, id
      limit ${limit} offset ${offset}
    )
    select counted.total, page.id, page.at, page.kind, page.detail, page.administrator_id, page.state, page.way,
      page.settled_at, page.reason
    from counted left join page on true
    order by page.at desc, page.administrator_id nulls first, page.way, page.id`)
  return { total: found[0]?.total ?? 0, notices: found.filter(({ id }) => id !== null) }
}

export type WebhookNotice = {
  kind: string
  at: Date
  detail: Record<string, unknown>
  administratorId: AdministratorId
  webhookUrl: string
  webhookSecret: string
}

export async function findWebhookNotice(db: Db, appId: AppId, id: NoticeId): Promise<WebhookNotice | undefined> {
  const [found] = await db.query<WebhookNotice>(sql`
    select n.kind, n.at, n.detail, m.id as administrator_id, m.webhook_url, m.webhook_secret
    from notices n
    join app_administrators m on m.app_id = ${appId} and m.id = n.administrator_id
    where n.app_id = ${appId} and n.id = ${id} and n.state = 'waiting' and m.webhook_url is not null`)
  return found
}

export type EmailNotice = Pick<WebhookNotice, 'kind' | 'at' | 'detail'> & { email: string; appName: string }

export async function findEmailNotice(db: Db, appId: AppId, id: NoticeId): Promise<EmailNotice | undefined> {
  const [found] = await db.query<EmailNotice>(sql`
    select n.kind, n.at, n.detail, m.email, a.name as app_name
    from notices n
    join app_administrators m on m.app_id = ${appId} and m.id = n.administrator_id
    join apps a on a.id = ${appId}
    where n.app_id = ${appId} and n.id = ${id} and n.state = 'waiting' and n.way = 'mail' and m.email is not null`)
  return found
}

export const settleNotice = (
  db: Db,
  appId: AppId,
  id: NoticeId,
  { state, at, reason }: { state: NoticeState; at: Date | null; reason: string | null },
) =>
  db.query(sql`
    update notices set state = ${state}, settled_at = ${at}, reason = ${reason}
    where app_id = ${appId} and id = ${id} and state = 'waiting'`)
