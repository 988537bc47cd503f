// List and view segments, count them, and find them by the names that messages use.

import { findApp } from '../apps/store.ts'
import { appNotFound, invalid, TookTooLong } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { countAudience } from './audience.ts'
import type { SegmentsContext } from './context.ts'
import { readFilters } from './filters.ts'
import { defaultSegments, isDefaultId, type Segment, type SegmentId, segmentItem, segmentNotFound } from './segment.ts'
import { countSegments, findSegment, findSegments, findSegmentsByName, isAnswering } from './store.ts'
import type { Node } from './tree.ts'

async function defaultsOf({ db }: SegmentsContext, appId: AppId): Promise<Segment[]> {
  const app = await findApp(db, appId)
  if (!app) throw appNotFound()
  return defaultSegments(appId, app.createdAt)
}

/** In the order they were made; the default ones were there from the beginning. */
export async function listSegments(ctx: SegmentsContext, appId: AppId, limit: number, offset: number) {
  const defaults = await defaultsOf(ctx, appId)
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

export async function getSegment(ctx: SegmentsContext, appId: AppId, id: SegmentId): Promise<Segment> {
  const found = isDefaultId(appId, id)
    ? (await defaultsOf(ctx, appId)).find((it) => it.id === id)
    : await findSegment(ctx.db, appId, id)
  if (!found) throw segmentNotFound()
  return found
}

/** Messages name segments by their names. An unknown one is an error: a message must not silently miss its audience. */
export async function getSegmentsByName(
  ctx: SegmentsContext,
  appId: AppId,
  names: readonly string[],
): Promise<Segment[]> {
  if (names.length === 0) return []
  const known = [...(await defaultsOf(ctx, appId)), ...(await findSegmentsByName(ctx.db, appId, names))]
  return [...new Set(names)].map((name) => {
    const found = known.find((it) => it.name === name)
    if (!found) throw invalid(`Segment "${name}" was not found`)
    return found
  })
}

export const treeOf = ({ filters }: Pick<Segment, 'filters'>): Node => readFilters(filters).tree

/**
 * Runs what looks at all of an app's users. Nobody waits for ever: what takes longer than the pool's minute is told as such,
 * and not as a broken server; a database that does not answer at all is found out before, in seconds.
 */
export async function counted<Result>(
  { db, countingDb }: Pick<SegmentsContext, 'db' | 'countingDb'>,
  run: (db: Db) => Promise<Result>,
): Promise<Result> {
  await isAnswering(db)
  try {
    return await run(countingDb)
  } catch (error) {
    if (!(error instanceof TookTooLong)) throw error
    throw invalid('This audience takes too long to count. Narrow its filters, or page through its members.')
  }
}

export const countSegment = (ctx: SegmentsContext, appId: AppId, node: Node): Promise<number> =>
  counted(ctx, (db) => countAudience(db, node, { appId, now: ctx.now() }))
