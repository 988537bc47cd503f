// All SQL on suspensions of content.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { Suspension, TemplateId } from './template.ts'

/** `messageId`: the message that was being rendered, `templateId`: what it was made from. */
export type NewSuspension = Suspension & { templateId: TemplateId | null; messageId: string }

/** Those of them that are suspended at this time. */
export const findSuspensions = (db: Db, appId: AppId, fingerprints: readonly string[], now: Date) =>
  db.query<Suspension>(sql`
    select fingerprint, since, until
    from template_suspensions
    where app_id = ${appId} and fingerprint = any(${fingerprints}::text[]) and until > ${now}`)

/** False when it is suspended already. */
export async function insertSuspension(db: Db, appId: AppId, it: NewSuspension): Promise<boolean> {
  const inserted = await db.query(sql`
    insert into template_suspensions as s (app_id, fingerprint, template_id, message_id, since, until)
    select a.id, ${it.fingerprint}::text, ${it.templateId}::uuid, ${it.messageId}::uuid, ${it.since}::timestamptz,
      ${it.until}::timestamptz
    from apps a
    where a.id = ${appId}
    on conflict (app_id, fingerprint) do update
      set template_id = excluded.template_id, message_id = excluded.message_id, since = excluded.since, until = excluded.until
      where s.until <= excluded.since
    returning s.fingerprint`)
  return inserted.length > 0
}

/** Suspensions that are over; deciding so is left to whoever reads them, this only makes room. */
export const deleteEndedSuspensions = (db: Db, appId: AppId, now: Date) =>
  db.query(sql`delete from template_suspensions where app_id = ${appId} and until <= ${now}`)

/** Of everything made from the template, and of content that says the same. False when nothing was suspended. */
export async function deleteSuspensions(
  db: Db,
  appId: AppId,
  { templateId, fingerprint }: { templateId: TemplateId; fingerprint: string },
  now: Date,
): Promise<boolean> {
  const deleted = await db.query<{ until: Date }>(sql`
    delete from template_suspensions
    where app_id = ${appId} and (template_id = ${templateId} or fingerprint = ${fingerprint})
    returning until`)
  return deleted.some(({ until }) => until > now)
}
