// All SQL on suspensions of content.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { Suspension, TemplateId } from './template.ts'

/** `messageId` is the message that was being rendered, and `templateId` the template that it was created from. */
export type NewSuspension = Suspension & { templateId: TemplateId | null; messageId: string }

/** Returns those that are suspended at this time. */
export const findSuspensions = (db: Db, appId: AppId, fingerprints: readonly string[], now: Date) =>
  db.query<Suspension>(sql`
    select fingerprint, since, until
    from template_suspensions
    where app_id = ${appId} and fingerprint = any(${fingerprints}::text[]) and until > ${now}`)

/** Returns false when the content is already suspended. */
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

/** Only frees space: whether a suspension has ended is decided wherever it is read. */
export const deleteEndedSuspensions = (db: Db, appId: AppId, now: Date) =>
  db.query(sql`delete from template_suspensions where app_id = ${appId} and until <= ${now}`)

/** Resumes everything created from the template, and all equal content. Returns false when nothing was suspended. */
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
