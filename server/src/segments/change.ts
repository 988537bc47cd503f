// Creates, updates and deletes segments. Each operation writes its audit entry in the same transaction.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { type AuditEntry, insertAuditEntries } from '../apps/store.ts'
import { AppError, invalid } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import { type Db, sqlState } from '../storage/db.ts'
import type { SegmentsContext } from './context.ts'
import { readFilters } from './filters/read-filters.ts'
import type { CreateSegmentBody, UpdateSegmentBody } from './schema.ts'
import { isDefaultId, isDefaultName, type Segment, type SegmentId, segmentNotFound } from './segment.ts'
import { deleteSegmentRow, findSegment, insertSegment, lockSegment, updateSegmentRow } from './store.ts'

const NAME_TAKEN = 'Segment name is already taken.'
const UNIQUE_VIOLATION = '23505'

const conflict = (title: string) => new AppError('conflict', { code: 'segment-1', title })
const readOnly = () => invalid('Default segments cannot be changed or deleted.')
const segmentInUse = () => invalid('Segment is used by an active journey.')
/** Deleting a missing segment answers "not found" without an error text. */
const nothingToDelete = () => new AppError('not-found')

export async function createSegment(
  { db, now, newId }: SegmentsContext,
  appId: AppId,
  body: CreateSegmentBody,
  by: RequestOrigin,
): Promise<SegmentId> {
  const { filters } = readFilters(body.filters)
  const id: SegmentId = body.id?.toLowerCase() ?? newId()
  if (isDefaultName(body.name)) throw conflict(NAME_TAKEN)
  if (isDefaultId(appId, id)) throw conflict('Segment id is already taken.')
  const at = now()
  const segment = { id, name: body.name, description: body.description || null, filters, createdAt: at, updatedAt: at }
  await db.transaction(async (db) => {
    if (!(await insertSegment(db, appId, segment)))
      throw conflict((await findSegment(db, appId, id)) ? 'Segment id is already taken.' : NAME_TAKEN)
    await recordAudit(
      db,
      appId,
      { id: newId(), actor: actorOf(by), action: 'segment.create', detail: { name: body.name } },
      id,
      at,
    )
  })
  return id
}

export async function updateSegment(
  { db, now, newId, isUsed }: SegmentsContext,
  appId: AppId,
  id: SegmentId,
  body: UpdateSegmentBody,
  by: RequestOrigin,
): Promise<void> {
  const filters = body.filters && readFilters(body.filters).filters
  if (isDefaultId(appId, id)) throw readOnly()
  if (isDefaultName(body.name)) throw invalid(NAME_TAKEN)
  try {
    await db.transaction(async (db) => {
      const before = await lockSegment(db, appId, id)
      if (!before) throw segmentNotFound()
      if (await isUsed(db, appId, id)) throw segmentInUse()
      const at = now()
      const after: Segment = {
        ...before,
        name: body.name,
        description: (body.description ?? before.description) || null,
        filters: filters ?? before.filters,
        updatedAt: at,
      }
      await updateSegmentRow(db, appId, after)
      const detail = { name: after.name, changed: changedParts(before, after) }
      await recordAudit(db, appId, { id: newId(), actor: actorOf(by), action: 'segment.update', detail }, id, at)
    })
  } catch (error) {
    // The name is the only unique column that an update changes.
    throw sqlState(error) === UNIQUE_VIOLATION ? invalid(NAME_TAKEN) : error
  }
}

const changedParts = (before: Segment, after: Segment) =>
  (['name', 'description', 'filters'] as const).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  )

/** Deletes the segment permanently. Users and subscriptions are not affected. */
export async function deleteSegment(
  { db, now, newId, isUsed }: SegmentsContext,
  appId: AppId,
  given: string,
  by: RequestOrigin,
): Promise<void> {
  if (!isUuid(given)) throw nothingToDelete()
  const id: SegmentId = given.toLowerCase()
  if (isDefaultId(appId, id)) throw readOnly()
  await db.transaction(async (db) => {
    const name = await deleteSegmentRow(db, appId, id)
    if (name === undefined) throw nothingToDelete()
    if (await isUsed(db, appId, id)) throw segmentInUse()
    await recordAudit(
      db,
      appId,
      { id: newId(), actor: actorOf(by), action: 'segment.delete', detail: { name } },
      id,
      now(),
    )
  })
}

const recordAudit = (
  db: Db,
  appId: AppId,
  entry: Omit<AuditEntry, 'targetType' | 'targetId'>,
  id: SegmentId,
  at: Date,
) => insertAuditEntries(db, appId, [{ ...entry, targetType: 'segment', targetId: id }], at)
