import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { findTemplates } from './store.ts'
import type { Template, TemplateId } from './template.ts'

/** Finds a template in its current version. Concurrent requests of an app run as one statement. */
export type FindTemplate = (appId: AppId, id: TemplateId) => Promise<Template | undefined>

export const createFindTemplate = ({ db, merger }: { db: Db; merger: Merger }): FindTemplate =>
  merger.merged({
    name: 'templates.find',
    parallel: 2,
    async run(appId, ids: TemplateId[]) {
      const found = new Map((await findTemplates(db, appId, [...new Set(ids)])).map((it) => [it.id, it]))
      return ids.map((id) => ({ value: found.get(id) }))
    },
  })
