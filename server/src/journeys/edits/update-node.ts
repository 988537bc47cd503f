import type { RequestOrigin } from '../../apps/audit/actor.ts'
import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { JourneysContext } from '../context.ts'
import type { Fields } from '../document/reader.ts'
import type { Journey, JourneyId } from '../journey.ts'
import { allNodes, type JourneyNode } from '../nodes/kinds.ts'
import type { NodeId } from '../nodes/node.ts'
import { mergePatch } from './merge-patch.ts'
import { changeJourney } from './update.ts'

const nodeNotFound = () =>
  new AppError('not-found', { code: 'journey-node-not-found', title: 'The journey has no such node' })

/** Changes one node at any depth by a merge patch. Its kind and id stay. */
export function updateNode(
  ctx: JourneysContext,
  appId: AppId,
  id: JourneyId,
  nodeId: NodeId,
  body: Fields,
  by: RequestOrigin,
): Promise<Journey> {
  const { concurrency_key: _, ...patch } = body
  return changeJourney(ctx, appId, id, body, by, ({ document }) => {
    const node = allNodes(document.nodes).find((node) => node.id === nodeId)
    if (!node) throw nodeNotFound()
    refuseImmutable(node, patch)
    const changed = { ...(mergePatch(node, patch) as Fields), id: nodeId, kind: node.kind } as JourneyNode
    return { given: { ...document, nodes: replaced(document.nodes, changed) } }
  })
}

function refuseImmutable(node: JourneyNode, patch: Fields): void {
  const wrong = (['id', 'kind'] as const).filter(
    (name) => Object.hasOwn(patch, name) && !isSame(patch[name], node[name]),
  )
  if (wrong.length > 0)
    throw new AppError(
      'invalid',
      ...wrong.map((field) => ({ code: 'request-0', title: `${field} of a node cannot be changed`, meta: { field } })),
    )
}

const isSame = (given: unknown, own: string) => typeof given === 'string' && given.toLowerCase() === own

const replaced = (nodes: readonly JourneyNode[], changed: JourneyNode): unknown[] =>
  nodes.map((node) => {
    if (node.id === changed.id) return changed
    if (!('branches' in node)) return node
    const branches = node.branches.map((branch) => ({ ...branch, nodes: replaced(branch.nodes, changed) }))
    return { ...node, branches }
  })
