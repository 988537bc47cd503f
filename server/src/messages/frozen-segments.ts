// The segments that a message names, as they were when it was accepted. Older messages, which were accepted before
// their filters were stored with them, use the current filters of their segments.

import type { AppId } from '../lib/ids.ts'
import type { FilterNode } from '../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../segments/read.ts'
import type { Db } from '../storage/db.ts'
import type { NamedSegment } from './message.ts'

/** In the order of the segments; undefined for a segment that is deleted and whose filters were not stored. */
export async function readSegmentTrees(
  db: Db,
  appId: AppId,
  named: readonly NamedSegment[],
): Promise<(FilterNode | undefined)[]> {
  const unfrozen = named.filter(({ filters }) => !filters).map(({ id }) => id)
  const found = await getSegmentsById({ db }, appId, unfrozen)
  return named.map(({ id, filters }) => {
    const segment = filters ? { filters } : found.get(id)
    return segment && filterTreeOf(segment)
  })
}
