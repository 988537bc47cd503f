// Creates, updates, deletes and copies templates. Each operation writes its audit entry in the same transaction.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { findAppGate, insertAuditEntries } from '../apps/store.ts'
import { AppError, appNotFound, invalid } from '../lib/errors.ts'
import type { AppId, OrganizationId } from '../lib/ids.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { Db } from '../storage/db.ts'
import { checkMayAttach } from './check-content.ts'
import { channelOf, contentFields, readContent } from './content.ts'
import type { TemplatesContext } from './context.ts'
import { readDynamicContent } from './dynamic-content.ts'
import { prepareContent } from './prepare-content.ts'
import type { CreateTemplateBody, UpdateTemplateBody } from './schema.ts'
import { deleteTemplate, findTemplate, insertTemplate, updateTemplate } from './store.ts'
import { type Template, type TemplateId, templateNotFound } from './template.ts'

/** A change that loses a race with another server is recomputed. This many failures in a row indicate a bug. */
const ATTEMPTS = 10

export async function createTemplate(
  ctx: TemplatesContext,
  appId: AppId,
  body: CreateTemplateBody,
  by: RequestOrigin,
): Promise<Template> {
  const name = readTemplateName(body.name)
  const content = readContent(body)
  checkMayAttach(content, ctx.mayAttach)
  readDynamicContent(body.dynamic_content)
  const dynamicContent = body.dynamic_content || null
  const emailHtml = await prepareContent(ctx.renderer, appId, content, dynamicContent)
  const now = ctx.now()
  const template: Template = {
    id: ctx.newId(),
    name,
    channel: channelOf(content),
    content,
    emailHtml,
    dynamicContent,
    revision: 1,
    createdAt: now,
    updatedAt: now,
  }
  await ctx.db.transaction(async (db) => {
    await insertTemplate(db, appId, template)
    await recordAudit(ctx, db, appId, by, 'template.create', template.id, { name: template.name }, now)
  })
  return template
}

/** Fields in the body replace existing ones, null removes one, and absent fields stay unchanged. */
export const changeTemplate = (
  ctx: TemplatesContext,
  appId: AppId,
  id: TemplateId,
  body: UpdateTemplateBody,
  by: RequestOrigin,
): Promise<Template> => ctx.inTurn(`${appId} ${id}`, () => applyChange(ctx, appId, id, body, by))

async function applyChange(
  ctx: TemplatesContext,
  appId: AppId,
  id: TemplateId,
  body: UpdateTemplateBody,
  by: RequestOrigin,
): Promise<Template> {
  const given = readContent(body)
  checkMayAttach(given, ctx.mayAttach)
  const removed = removedFields(body)
  readDynamicContent(body.dynamic_content)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await findTemplate(ctx.db, appId, id)
    if (!before) throw templateNotFound()
    const content = { ...before.content, ...given }
    for (const name of removed) delete content[name as keyof typeof content]
    const dynamicContent = body.dynamic_content === undefined ? before.dynamicContent : body.dynamic_content || null
    // Checking is slow, so no row is locked meanwhile. The write verifies that the template has not changed.
    const emailHtml = await prepareContent(ctx.renderer, appId, content, dynamicContent)
    const now = ctx.now()
    const after: Template = {
      ...before,
      name: body.name === undefined || body.name === null ? before.name : readTemplateName(body.name),
      channel: channelOf(content),
      content,
      emailHtml,
      dynamicContent,
      revision: before.revision + 1,
      updatedAt: now,
    }
    const isDone = await ctx.db.transaction(async (db) => {
      if (!(await updateTemplate(db, appId, after, before.revision))) return false
      // While a journey uses the template, its content may change, but not its channel.
      if (after.channel !== before.channel && (await ctx.isUsed(db, appId, id))) throw templateInUse()
      const others = (['name', 'dynamic_content'] as const).filter((name) => body[name] !== undefined)
      const fields = [...Object.keys(given), ...removed, ...others]
      await recordAudit(ctx, db, appId, by, 'template.update', id, { name: after.name, fields }, now)
      return true
    })
    if (isDone) return after
  }
  throw new AppError('conflict', { code: 'template-1', title: 'The template is being changed by others; try again' })
}

/** The fields that an update removes. `isSms` is an alternative spelling of `isSMS`. */
const removedFields = (body: Record<string, unknown>) =>
  Object.keys(contentFields).flatMap((name) =>
    ownProperty(body, name) === null ? [name === 'isSms' ? 'isSMS' : name] : [],
  )

export function removeTemplate(ctx: TemplatesContext, appId: AppId, id: TemplateId, by: RequestOrigin): Promise<void> {
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const name = await deleteTemplate(db, appId, id)
    if (name === undefined) throw templateNotFound()
    if (await ctx.isUsed(db, appId, id)) throw templateInUse()
    await recordAudit(ctx, db, appId, by, 'template.delete', id, { name }, now)
  })
}

/** Copies into another app of the same organization. Apps of other organizations are treated as missing. */
export function copyTemplate(
  ctx: TemplatesContext,
  from: AppId,
  id: TemplateId,
  target: { appId: AppId; organizationId: OrganizationId },
  by: RequestOrigin,
): Promise<Template> {
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const original = await findTemplate(db, from, id)
    if (!original) throw templateNotFound()
    const app = await findAppGate(db, target.appId)
    if (app?.organizationId !== target.organizationId) throw appNotFound()
    const copy: Template = { ...original, id: ctx.newId(), revision: 1, createdAt: now, updatedAt: now }
    await insertTemplate(db, target.appId, copy)
    const detail = { name: copy.name, from_app_id: from, from_template_id: id }
    await recordAudit(ctx, db, target.appId, by, 'template.copy', copy.id, detail, now)
    return copy
  })
}

const templateInUse = () => invalid('Template is used by an active journey.')

/** The schema has already checked the length. */
function readTemplateName(name: string): string {
  if (name.trim() === '') throw invalid('name must not be empty', { field: 'name' })
  return name
}

const recordAudit = (
  { newId }: TemplatesContext,
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  id: TemplateId,
  detail: Record<string, unknown>,
  now: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'template', targetId: id, detail }],
    now,
  )
