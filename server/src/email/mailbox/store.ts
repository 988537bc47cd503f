// All SQL on caught_mail.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'

export type CaughtEmailSummary = {
  id: string
  at: Date
  fromAddress: string
  toAddress: string
  subject: string
  messageId: string | null
}
export type CaughtEmail = CaughtEmailSummary & { raw: Buffer }
export type MailboxCursor = { at: Date; id: string }

export const insertCaught = (db: Db, appId: AppId, mails: readonly CaughtEmail[]) =>
  db.query(sql`
    insert into caught_mail (app_id, id, at, from_address, to_address, subject, message_id, raw)
    select a.id, r.id, r.at, r."fromAddress", r."toAddress", r.subject, r."messageId", decode(r.raw, 'base64')
    from apps a cross join jsonb_to_recordset(${rows(mails.map(rowOf))}::jsonb)
      as r(id uuid, at timestamptz, "fromAddress" text, "toAddress" text, subject text, "messageId" uuid, raw text)
    where a.id = ${appId}`)

const rowOf = (mail: CaughtEmail) => ({ ...mail, raw: mail.raw.toString('base64') })

/** Newest first, starting after the cursor. */
export const listCaught = (
  db: Db,
  appId: AppId,
  { to, after, limit }: { to?: string | undefined; after?: MailboxCursor | undefined; limit: number },
) =>
  db.query<CaughtEmailSummary>(sql`
    select id, at, from_address, to_address, subject, message_id
    from caught_mail
    where app_id = ${appId} and (${to ?? null}::text is null or lower(to_address) = ${to ?? null})
      and (${after?.at ?? null}::timestamptz is null
        or (at, id) < (${after?.at ?? null}::timestamptz, ${after?.id ?? null}::uuid))
    order by at desc, id desc
    limit ${limit}`)

export async function findCaught(db: Db, appId: AppId, id: string): Promise<CaughtEmail | undefined> {
  const [found] = await db.query<CaughtEmail>(sql`
    select id, at, from_address, to_address, subject, message_id, raw
    from caught_mail
    where app_id = ${appId} and id = ${id}`)
  return found
}

/** The newest mail beyond the `kept` newest ones. */
export async function findNewestBeyond(db: Db, appId: AppId, kept: number): Promise<MailboxCursor | undefined> {
  const [found] = await db.query<MailboxCursor>(sql`
    select at, id from caught_mail where app_id = ${appId} order by at desc, id desc limit 1 offset ${kept}`)
  return found
}

/** Deletes the mail at the cursor and all older ones. */
export const deleteCaughtUpTo = (db: Db, appId: AppId, { at, id }: MailboxCursor) =>
  db.query(sql`
    delete from caught_mail where app_id = ${appId} and (at, id) <= (${at}::timestamptz, ${id}::uuid)`)

export const deleteCaughtBefore = (db: Db, appId: AppId, before: Date) =>
  db.query(sql`delete from caught_mail where app_id = ${appId} and at < ${before}`)

export async function deleteAllCaught(db: Db, appId: AppId): Promise<number> {
  const deleted = await db.query(sql`delete from caught_mail where app_id = ${appId} returning id`)
  return deleted.length
}
