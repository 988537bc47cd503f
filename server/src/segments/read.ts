// Lists, shows and counts segments, and finds them by the names that messages use.

import { findApp } from '../apps/store.ts'
import { appNotFound, invalid, TookTooLong } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { countAudience } from './audience.ts'
import type { SegmentsContext } from './context.ts'
import { readFilters } from './filters/read-filters.ts'
import type { FilterNode } from './filters/tree.ts'
import {
  defaultSegments,
  findSegmentByName,
  isDefaultId,
  type Segment,
  type SegmentId,
  segmentItem,
  segmentNotFound,
} from './segment.ts'
import {
  countSegments,
  findSegment,
  findSegments,
  findSegmentsById,
  findSegmentsByName,
  pingDatabase,
} from './store.ts'

async function loadDefaultSegments({ db }: Pick<SegmentsContext, 'db'>, appId: AppId): Promise<Segment[]> {
  const app = await findApp(db, appId)
  if (!app) throw appNotFound()
  return defaultSegments(appId, app.createdAt)
}

/** In order of creation. The default segments come first. */
export async function listSegments(ctx: SegmentsContext, appId: AppId, limit: number, offset: number) {
  const defaults = await loadDefaultSegments(ctx, appId)
  const page = defaults.slice(offset, offset + limit)
  const rest = limit - page.length
  const stored = rest > 0 ? await findSegments(ctx.db, appId, rest, Math.max(0, offset - defaults.length)) : []
  return {
    total_count: defaults.length + (await countSegments(ctx.db, appId)),
    offset,
    limit,
    segments: [...page, ...stored].map((it) => segmentItem(appId, it)),
  }
}

export async function getSegment(ctx: Pick<SegmentsContext, 'db'>, appId: AppId, id: SegmentId): Promise<Segment> {
  const found = isDefaultId(appId, id)
    ? (await loadDefaultSegments(ctx, appId)).find((it) => it.id === id)
    : await findSegment(ctx.db, appId, id)
  if (!found) throw segmentNotFound()
  return found
}

/**
 * Messages refer to segments by name. An unknown name is an error, so that a message cannot silently miss its audience.
 */
export async function getSegmentsByName(
  ctx: SegmentsContext,
  appId: AppId,
  names: readonly string[],
): Promise<Segment[]> {
  if (names.length === 0) return []
  const known = [...(await loadDefaultSegments(ctx, appId)), ...(await findSegmentsByName(ctx.db, appId, names))]
  return [...new Set(names)].map((name) => {
    const found = findSegmentByName(known, name)
    if (!found) throw invalid(`Segment "${name}" was not found`)
    return found
  })
}

/** Finds segments by id. Segments that do not exist are left out. */
export async function getSegmentsById(
  { db }: Pick<SegmentsContext, 'db'>,
  appId: AppId,
  ids: readonly SegmentId[],
): Promise<Map<SegmentId, Segment>> {
  const stored = ids.filter((id) => !isDefaultId(appId, id))
  const found = [
    ...(stored.length < ids.length ? defaultSegments(appId, new Date(0)) : []),
    ...(stored.length > 0 ? await findSegmentsById(db, appId, stored) : []),
  ]
  return new Map(found.filter(({ id }) => ids.includes(id)).map((it) => [it.id, it]))
}

/** Authors may refer to a segment by name or by id. Names take precedence, because a name may look like an id. */
export async function getSegmentIds(
  { db }: Pick<SegmentsContext, 'db'>,
  appId: AppId,
  namesOrIds: readonly string[],
): Promise<SegmentId[]> {
  if (namesOrIds.length === 0) return []
  const named = [...defaultSegments(appId, new Date(0)), ...(await findSegmentsByName(db, appId, namesOrIds))]
  const ids = namesOrIds.filter(isUuid).map((id) => id.toLowerCase())
  const known = await getSegmentsById({ db }, appId, ids)
  const found = namesOrIds.map((given) => {
    const id = findSegmentByName(named, given)?.id ?? known.get(given.toLowerCase())?.id
    if (id === undefined) throw invalid(`Segment "${given}" was not found`)
    return id
  })
  return [...new Set(found)]
}

export const filterTreeOf = ({ filters }: Pick<Segment, 'filters'>): FilterNode => readFilters(filters).tree

/** The app whose users are counted, and the signal that the caller has stopped waiting. */
export type CountRequest = { appId: AppId; signal: AbortSignal }

/**
 * Runs a statement that reads all of an app's users when it is the app's turn. A statement that exceeds the pool's
 * limit of one minute is reported as too slow rather than as a server error. An unresponsive database is detected
 * beforehand, within seconds.
 */
export async function runCounting<Result>(
  { db, counting }: Pick<SegmentsContext, 'db' | 'counting'>,
  { appId, signal }: CountRequest,
  run: (db: Db) => Promise<Result>,
): Promise<Result> {
  await pingDatabase(db)
  try {
    return await counting.use(appId, run, signal)
  } catch (error) {
    if (!(error instanceof TookTooLong)) throw error
    throw invalid('This audience takes too long to count. Narrow its filters, or page through its members.')
  }
}

export const countSegment = (ctx: SegmentsContext, caller: CountRequest, node: FilterNode): Promise<number> =>
  runCounting(ctx, caller, (db) => countAudience(db, node, { appId: caller.appId, now: ctx.now() }))
