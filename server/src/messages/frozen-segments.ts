// The segments that a message names, as they were when it was accepted. Messages that were accepted before these were kept with them
// go by what their segments are now.

import type { AppId } from '../lib/ids.ts'
import type { FilterNode } from '../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../segments/read.ts'
import type { Db } from '../storage/db.ts'
import type { NamedSegment } from './message.ts'

/** In their order; undefined where nobody can tell any more who was meant. */
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
