// When the conditions or the expiration of a wait change in an active journey, runs that wait there are checked again: what they wait
// for now may have happened already.

import { isDeepStrictEqual } from 'node:util'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { advanceJobs } from '../jobs.ts'
import type { Journey } from '../journey.ts'
import { allNodes, type JourneyNode, waitConditionsOf } from '../nodes/kinds.ts'
import type { NodeId } from '../nodes/node.ts'
import type { WaitConditions } from '../nodes/node-kind.ts'
import { makeDue } from '../runs/lifecycle-store.ts'

/** Called in the transaction of the edit, under the lock of the journey: nobody advances its runs meanwhile. */
export async function recheckWaits(
  { queue }: JourneysContext,
  db: Db,
  appId: AppId,
  before: Journey,
  { id, document, updatedAt: now }: Journey,
): Promise<void> {
  const changed = findChanged(before.document.nodes, document.nodes)
  if (changed.length === 0) return
  await makeDue(db, appId, id, changed, now)
  await queue.enqueue(db, advanceJobs(appId, { id, audience: document.audience }))
}

type ChangedWait = { nodeId: NodeId; seconds: number | null }

function findChanged(before: readonly JourneyNode[], after: readonly JourneyNode[]): ChangedWait[] {
  const nodesBefore = new Map(allNodes(before).map((node) => [node.id, node]))
  return allNodes(after).flatMap((node) => {
    const nodeBefore = nodesBefore.get(node.id)
    const [waitBefore, wait] = [nodeBefore && waitConditionsOf(nodeBefore), waitConditionsOf(node)]
    if (!waitBefore || !wait || isDeepStrictEqual(rulesOf(waitBefore), rulesOf(wait))) return []
    return [{ nodeId: node.id, seconds: wait.expiration?.duration_seconds ?? null }]
  })
}

const rulesOf = ({ branches, ...rest }: WaitConditions) => ({
  conditions: branches.map(({ id, condition }) => ({ id, condition })),
  ...rest,
})
