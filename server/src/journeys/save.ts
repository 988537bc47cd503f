// How a journey is written, for every operation that does: the row, what it refers to, the version with who made it, the line of
// the audit log, and the work that comes of it, all in the caller's transaction.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries } from '../apps/store.ts'
import { AppError } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { Db } from '../storage/db.ts'
import { ABSENT_OBJECTS, hasLiquid, type TemplateSources } from '../templates/render/source.ts'
import type { JourneysContext } from './context.ts'
import type { DocumentReading, Reference } from './document/reading.ts'
import { activateJob, startJob, stopJob } from './jobs.ts'
import type { Journey } from './journey.ts'
import { deleteReferences, deleteVersionsUpTo, insertReferences, insertVersion } from './store.ts'

/** Older ones are forgotten. */
const MAX_VERSIONS = 100
/** Each costs a question. */
const MAX_BAD_TEXTS = 20

export type JourneyChange = {
  journey: Journey
  references: readonly Reference[]
  fields: string[]
  by: RequestOrigin
  action: string
  detail?: object
}

/** All but the row itself, which is inserted or updated. */
export async function recordChange(ctx: JourneysContext, db: Db, appId: AppId, saved: JourneyChange): Promise<void> {
  const { journey, references, fields, by, action, detail } = saved
  const actor = actorOf(by)
  const { id, version, document, state, updatedAt } = journey
  await deleteReferences(db, appId, id)
  if (references.length > 0) await insertReferences(db, appId, id, references)
  await insertVersion(db, appId, id, {
    version,
    document,
    state,
    fields,
    changedAt: updatedAt,
    changedByKind: actor.kind,
    changedById: actor.kind === 'system' ? null : actor.id,
  })
  if (version > MAX_VERSIONS) await deleteVersionsUpTo(db, appId, id, version - MAX_VERSIONS)
  const entry = { name: document.name, state, ...detail }
  await insertAuditEntries(
    db,
    appId,
    [{ id: ctx.newId(), actor, action, targetType: 'journey', targetId: id, detail: entry }],
    updatedAt,
  )
  await ctx.queue.enqueue(db, workOf(appId, journey))
}

/** Asked for with every change: what is there already stays one job, and a job that comes too early asks for itself again. */
function workOf(appId: AppId, { id, state, document: { schedule } }: Journey): NewJob[] {
  if (state === 'processing') return [activateJob(appId, id)]
  if (state === 'scheduled' && schedule?.start_at) return [startJob(appId, id, new Date(schedule.start_at))]
  if (state === 'active' && schedule?.stop_at) return [stopJob(appId, id, new Date(schedule.stop_at))]
  return []
}

/** Outside the transaction: other processes do it. They tell of the first bad text, so those after it are asked about again. */
export async function checkLiquid(
  ctx: JourneysContext,
  appId: AppId,
  { liquidTexts, reader }: DocumentReading,
): Promise<void> {
  let rest = Object.entries(liquidTexts).filter(([, { text }]) => hasLiquid(text))
  for (let told = 0; told < MAX_BAD_TEXTS && rest.length > 0; told++) {
    const bad = await findBadText(ctx, appId, Object.fromEntries(rest))
    if (!bad) return
    reader.report(bad.field, `has Liquid that cannot be read${bad.problem}`)
    const at = rest.findIndex(([field]) => field === bad.field)
    rest = at < 0 ? [] : rest.slice(at + 1)
  }
}

async function findBadText({ renderer }: JourneysContext, appId: AppId, sources: TemplateSources) {
  try {
    await renderer.check(appId, sources, ABSENT_OBJECTS)
    return undefined
  } catch (error) {
    const field = error instanceof AppError ? error.problems[0]?.meta?.field : undefined
    if (!(error instanceof AppError) || typeof field !== 'string') throw error
    return { field, problem: error.message.slice(field.length) }
  }
}
