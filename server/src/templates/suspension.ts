// Content that keeps hitting its time limit is suspended: it is not rendered again until it is edited, somebody resumes
// it, or a day has passed. Equal content shares the suspension, so that sending the same text again does not evade it.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { ContentFields } from './content.ts'
import type { EmailHtml } from './content-sources.ts'
import type { TemplatesContext } from './context.ts'
import { fingerprintOf } from './fingerprint.ts'
import { usesLiquid } from './prepare-content.ts'
import { findTemplate } from './store.ts'
import { deleteSuspensions, findSuspensions } from './suspension-store.ts'
import { type Suspension, type Template, type TemplateId, templateNotFound } from './template.ts'

export const SUSPENSION_MS = 86_400_000

/** Finds the suspension of one content, if there is one. Concurrent requests of an app run as one statement. */
export type FindSuspension = (appId: AppId, fingerprint: string) => Promise<Suspension | undefined>

export const createFindSuspension = ({
  db,
  merger,
  now,
}: {
  db: Db
  merger: Merger
  now: () => Date
}): FindSuspension =>
  merger.merged({
    name: 'templates.suspension',
    parallel: 2,
    async run(appId, fingerprints: string[]) {
      const suspensions = await findSuspensions(db, appId, [...new Set(fingerprints)], now())
      const byFingerprint = new Map(suspensions.map((it) => [it.fingerprint, it]))
      return fingerprints.map((fingerprint) => ({ value: byFingerprint.get(fingerprint) }))
    },
  })

type SuspendableContent = { content: ContentFields; emailHtml: EmailHtml; dynamicContent: string | null }

export async function refuseSuspended(find: FindSuspension, appId: AppId, said: SuspendableContent): Promise<void> {
  const suspension = await find(appId, fingerprintOf(said.content, said.emailHtml, said.dynamicContent))
  if (suspension)
    throw invalid(
      `The content is suspended until ${suspension.until.toISOString()} because rendering it kept hitting its time limit. ` +
        'Edit the template or the content, or resume the template with POST /templates/{template_id}/resume.',
    )
}

export async function findSuspensionOf(
  { db, now }: Pick<TemplatesContext, 'db' | 'now'>,
  appId: AppId,
  { content, emailHtml, dynamicContent }: Template,
): Promise<Suspension | undefined> {
  // Content without Liquid is never rendered, so it cannot be suspended.
  if (!usesLiquid(content)) return undefined
  const [suspension] = await findSuspensions(db, appId, [fingerprintOf(content, emailHtml, dynamicContent)], now())
  return suspension
}

/** Resuming a template that is not suspended has no effect. */
export async function resumeTemplate(
  { db, now, newId }: TemplatesContext,
  appId: AppId,
  id: TemplateId,
  by: RequestOrigin,
): Promise<Template> {
  const template = await findTemplate(db, appId, id)
  if (!template) throw templateNotFound()
  const { name, content, emailHtml, dynamicContent } = template
  const fingerprint = fingerprintOf(content, emailHtml, dynamicContent)
  const at = now()
  await db.transaction(async (db) => {
    if (!(await deleteSuspensions(db, appId, { templateId: id, fingerprint }, at))) return
    const entry = { id: newId(), actor: actorOf(by), action: 'template.resume', detail: { name } }
    await insertAuditEntries(db, appId, [{ ...entry, targetType: 'template', targetId: id }], at)
  })
  return template
}
