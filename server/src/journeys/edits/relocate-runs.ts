// When a node is removed from an active journey, runs that wait there continue at the next node that stays.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { advanceJobs } from '../jobs.ts'
import type { Journey } from '../journey.ts'
import { allNodes, type JourneyNode } from '../nodes/kinds.ts'
import { moveOthers, moveWaiting, type RemovedNode } from '../runs/lifecycle-store.ts'
import { compileProgram, END, type Step } from '../runs/program.ts'
import { COUNT_SHARD, changeCounts } from '../stats-store.ts'

/** Called in the transaction of the edit, under the lock of the journey: nobody advances its runs meanwhile. */
export async function relocateRuns(
  { queue }: JourneysContext,
  db: Db,
  appId: AppId,
  before: Journey,
  { id, document, updatedAt: now }: Journey,
): Promise<void> {
  const removed = findRemoved(before.document.nodes, document.nodes)
  if (removed.length === 0) return
  const waited = await moveWaiting(db, appId, id, removed, now)
  await moveOthers(db, appId, id, removed, now)
  const changes = waited.map(({ nodeId, total }) => ({ placeId: nodeId, fact: 'waiting', by: -total }))
  await changeCounts(db, appId, id, COUNT_SHARD.changes, changes)
  await queue.enqueue(db, advanceJobs(appId, { id, audience: document.audience }))
}

/** In the order before the edit: after the last node of a branch comes the node after the branches. */
export function findRemoved(before: readonly JourneyNode[], after: readonly JourneyNode[]): RemovedNode[] {
  const { steps } = compileProgram(before)
  const stays = new Set(allNodes(after).map(({ id }) => id))
  const nextOf = ({ next }: Step): string | null => {
    const step = next === END ? undefined : steps[next]
    if (!step) return null
    return stays.has(step.node.id) ? step.node.id : nextOf(step)
  }
  return steps.filter(({ node }) => !stays.has(node.id)).map((step) => ({ nodeId: step.node.id, next: nextOf(step) }))
}
