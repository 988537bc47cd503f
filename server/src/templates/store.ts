// All SQL on templates.

import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import type { ContentChannel } from './content.ts'
import type { EmailHtml } from './content-sources.ts'
import type { Template, TemplateId, TemplateSummary } from './template.ts'

/** Stored in two columns, so that the HTML of a body in one language, the common case, stays plain text. */
const emailHtml = sql`coalesce(to_jsonb(email_html), email_html_by_language) as email_html`
const singleHtml = (html: EmailHtml) => (typeof html === 'string' ? html : null)
const htmlByLanguage = (html: EmailHtml) => (typeof html === 'string' || html === null ? null : JSON.stringify(html))

export const insertTemplate = (db: Db, appId: AppId, it: Template) =>
  db.query(sql`
    insert into templates
      (app_id, id, name, channel, content, email_html, email_html_by_language, dynamic_content, revision, created_at, updated_at)
    select a.id, ${it.id}::uuid, ${it.name}, ${it.channel}, ${JSON.stringify(it.content)}::jsonb, ${singleHtml(it.emailHtml)}::text,
      ${htmlByLanguage(it.emailHtml)}::jsonb,
      ${it.dynamicContent}::text, ${it.revision}::integer, ${it.createdAt}::timestamptz, ${it.updatedAt}::timestamptz
    from apps a
    where a.id = ${appId}`)

export async function findTemplate(db: Db, appId: AppId, id: TemplateId): Promise<Template | undefined> {
  const [template] = await db.query<Template>(sql`
    select id, name, channel, content, ${emailHtml}, dynamic_content, revision, created_at, updated_at
    from templates
    where app_id = ${appId} and id = ${id}`)
  return template
}

export const findTemplates = (db: Db, appId: AppId, ids: readonly TemplateId[]) =>
  db.query<Template>(sql`
    select id, name, channel, content, ${emailHtml}, dynamic_content, revision, created_at, updated_at
    from templates
    where app_id = ${appId} and id = any(${ids}::uuid[])`)

/** The current revision of each template. Deleted templates are left out. */
export async function findRevisions(
  db: Db,
  appId: AppId,
  ids: readonly TemplateId[],
): Promise<Map<TemplateId, number>> {
  const found = await db.query<Pick<Template, 'id' | 'revision'>>(sql`
    select id, revision from templates where app_id = ${appId} and id = any(${ids}::uuid[])`)
  return new Map(found.map(({ id, revision }) => [id, revision]))
}

/** Returns those that exist. Nobody can change or delete them until the transaction ends. */
export const lockTemplatesForShare = (db: Db, appId: AppId, ids: readonly TemplateId[]) =>
  db.query<{ id: TemplateId; channel: ContentChannel | null }>(sql`
    select id, channel from templates where app_id = ${appId} and id = any(${ids}::uuid[]) order by id for share`)

/** Returns false when the template was deleted or has changed since the revision that the change is based on. */
export async function updateTemplate(db: Db, appId: AppId, it: Template, fromRevision: number): Promise<boolean> {
  const changed = await db.query(sql`
    update templates
    set name = ${it.name}, channel = ${it.channel}, content = ${JSON.stringify(it.content)}, email_html = ${singleHtml(it.emailHtml)},
      email_html_by_language = ${htmlByLanguage(it.emailHtml)},
      dynamic_content = ${it.dynamicContent}, revision = ${it.revision}, updated_at = ${it.updatedAt}
    where app_id = ${appId} and id = ${it.id} and revision = ${fromRevision}
    returning id`)
  return changed.length > 0
}

/** Returns the name of the template that this very call deleted. */
export async function deleteTemplate(db: Db, appId: AppId, id: TemplateId): Promise<string | undefined> {
  const [deleted] = await db.query<{ name: string }>(sql`
    delete from templates
    where app_id = ${appId} and id = ${id}
    returning name`)
  return deleted?.name
}

export type TemplatesPage = { limit: number; offset: number; channel?: ContentChannel | undefined }

/**
 * Oldest first, so that a template created while somebody pages through the list is appended at the end. The total is
 * counted in the same statement.
 */
export async function listTemplates(
  db: Db,
  appId: AppId,
  { limit, offset, channel }: TemplatesPage,
): Promise<{ total: number; templates: TemplateSummary[] }> {
  const ofChannel = channel === undefined ? sql`` : sql`and channel = ${channel}`
  const found = await db.query<TemplateSummary & { total: number }>(sql`
    with counted as materialized (
      select count(*)::integer as total
      from templates
      where app_id = ${appId} ${ofChannel}
    ), page as materialized (
      select id, name, created_at, updated_at
      from templates
      where app_id = ${appId} ${ofChannel}
      order by created_at, id
      limit ${limit} offset ${offset}
    )
    select counted.total, page.id, page.name, page.created_at, page.updated_at
    from counted left join page on true
    order by page.created_at, page.id`)
  return { total: found[0]?.total ?? 0, templates: found.filter(({ id }) => id !== null) }
}
