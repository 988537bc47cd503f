// A copy of a journey: a draft with nodes of its own and without a schedule.

import type { RequestOrigin } from '../apps/audit/actor.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import type { JourneysContext } from './context.ts'
import { insertNewJourney } from './create.ts'
import { readDocument } from './document/read-document.ts'
import { isPresent } from './document/reader.ts'
import type { Journey, JourneyId } from './journey.ts'
import { allNodes, type JourneyBranch, type JourneyNode } from './nodes/kinds.ts'
import type { BranchCondition } from './nodes/node.ts'
import { getJourney } from './view.ts'

const MAX_NAME = 300

export async function duplicateJourney(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  { name }: { name?: unknown },
  by: RequestOrigin,
): Promise<Journey> {
  const { document: original } = await getJourney(ctx, appId, id)
  const before = { ...original, schedule: null, nodes: withNewIds(original.nodes, ctx.newId) }
  const copy = { ...before, name: isPresent(name) ? name : nameOfCopy(original.name) }
  const options = { before, now: ctx.now(), minWaitSeconds: ctx.minWaitSeconds, newId: ctx.newId }
  const { document, reading } = readDocument(copy, options)
  // References that are broken in the original may be broken in the copy, until somebody activates it.
  return insertNewJourney(ctx, appId, document, reading, {
    by,
    action: 'journey.duplicate',
    detail: { from_journey_id: id },
    mayMiss: true,
  })
}

const nameOfCopy = (name: string) => [...`Copy of ${name}`].slice(0, MAX_NAME).join('')

function withNewIds(nodes: readonly JourneyNode[], newId: NewId): JourneyNode[] {
  const ids = new Map(allNodes(nodes).map(({ id }) => [id, newId()]))
  const renewNode = (node: JourneyNode): JourneyNode => {
    const own = { ...node, id: ids.get(node.id) as string }
    return 'branches' in own ? ({ ...own, branches: own.branches.map(renewBranch) } as JourneyNode) : own
  }
  const renewBranch = (branch: JourneyBranch & { condition?: BranchCondition }) => ({
    ...branch,
    id: newId(),
    ...(branch.condition?.kind === 'on_notification_action' && {
      condition: { ...branch.condition, sending_node_id: ids.get(branch.condition.sending_node_id) as string },
    }),
    nodes: branch.nodes.map(renewNode),
  })
  return nodes.map(renewNode)
}
