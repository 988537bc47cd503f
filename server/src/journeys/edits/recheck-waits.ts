// Who waits at a `wait_until` of an active journey when its conditions or its expiration change is looked at anew: what it waits
// for now may have happened already.

import { isDeepStrictEqual } from 'node:util'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { JourneysContext } from '../context.ts'
import { advanceJobs } from '../jobs.ts'
import type { Journey } from '../journey.ts'
import { allNodes, type JourneyNode, type NodeOf } from '../nodes/node.ts'
import { listens } from '../runs/interpret.ts'
import { makeDue } from '../runs/lifecycle-store.ts'

/** In the transaction of the edit, under the lock of the journey: nobody moves its runs meanwhile. */
export async function recheckWaits(
  { queue }: JourneysContext,
  db: Db,
  appId: AppId,
  before: Journey,
  { id, document, updatedAt: now }: Journey,
): Promise<void> {
  const changed = findChanged(before.document.nodes, document.nodes)
  if (changed.length === 0) return
  const list = changed.map(({ id, expiration }) => ({ nodeId: id, seconds: expiration?.duration_seconds ?? null }))
  await makeDue(db, appId, id, list, now)
  await queue.enqueue(db, advanceJobs(appId, { id, audience: document.audience }))
}

function findChanged(before: readonly JourneyNode[], after: readonly JourneyNode[]): NodeOf<'wait_until'>[] {
  const known = new Map(allNodes(before).map((node) => [node.id, node]))
  return allNodes(after)
    .filter(listens)
    .filter((node) => {
      const old = known.get(node.id)
      return old && listens(old) && !isDeepStrictEqual(waitOf(old), waitOf(node))
    })
}

const waitOf = ({ branches, expiration }: NodeOf<'wait_until'>) => ({
  conditions: branches.map(({ id, condition }) => ({ id, condition })),
  expiration,
})
