// What every change of a journey writes beside its row: references, the version and its author, the entry of the audit log, and the
// jobs that follow. All of it is in the caller's transaction.

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

/** Older versions are deleted. */
const MAX_VERSIONS = 100
/** Each one costs another check. */
const MAX_BAD_TEXTS = 20

export type JourneyChange = {
  journey: Journey
  references: readonly Reference[]
  fields: string[]
  by: RequestOrigin
  action: string
  detail?: object
}

/** The row itself is inserted or updated by the caller. */
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

/** Enqueued with every change: a job that exists already stays one job, and one that runs too early enqueues itself again. */
function workOf(appId: AppId, { id, state, document: { schedule } }: Journey): NewJob[] {
  if (state === 'processing') return [activateJob(appId, id)]
  if (state === 'scheduled' && schedule?.start_at) return [startJob(appId, id, new Date(schedule.start_at))]
  if (state === 'active' && schedule?.stop_at) return [stopJob(appId, id, new Date(schedule.stop_at))]
  return []
}

/** Runs outside the transaction, because other processes check. They report only the first bad text, so the ones after it are checked again. */
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
