// Assigns the ids of nodes and branches. A node that is sent back with its id stays the same, and so do the users who wait there.

import type { NewId } from '../../lib/ids.ts'
import { allNodes, branchesOf, type JourneyNode, type NodeKind, templateChannelOf } from '../nodes/kinds.ts'
import type { DocumentReading } from './reading.ts'

export function giveIds(reading: DocumentReading, before: readonly JourneyNode[], newId: NewId): void {
  const known = new Map(allNodes(before).map((node) => [node.id, node]))
  giveNodeIds(reading, known, newId)
  giveBranchIds(reading, known, newId)
  resolveSenders(reading)
}

function giveNodeIds({ reader, nodes }: DocumentReading, known: ReadonlyMap<string, JourneyNode>, newId: NewId): void {
  const taken = new Set<string>()
  const names = new Set<string>()
  for (const { path, node, givenId } of nodes) {
    const old = givenId === undefined ? undefined : known.get(givenId)
    if (givenId !== undefined && !old)
      reader.report(`${path}.id`, 'names no node of this journey; new nodes get their id from the server')
    else if (givenId !== undefined && taken.has(givenId)) reader.report(`${path}.id`, 'is there twice')
    else if (old && old.kind !== node.kind)
      reader.report(`${path}.kind`, `cannot change from ${old.kind} to ${node.kind}; leave out the id for a new node`)
    node.id = givenId ?? newId()
    taken.add(node.id)
    if (node.client_node_id === undefined) continue
    if (names.has(node.client_node_id)) reader.report(`${path}.client_node_id`, 'is there twice')
    names.add(node.client_node_id)
  }
}

/** A branch cannot move to another node. */
function giveBranchIds(
  { reader, branches }: DocumentReading,
  known: ReadonlyMap<string, JourneyNode>,
  newId: NewId,
): void {
  const taken = new Set<string>()
  for (const { path, node, branch, givenId } of branches) {
    const old = known.get(node.id)
    if (givenId !== undefined && !(old && branchesOf(old).some(({ id }) => id === givenId)))
      reader.report(`${path}.id`, 'names no branch of this node; new branches get their id from the server')
    else if (givenId !== undefined && taken.has(givenId)) reader.report(`${path}.id`, 'is there twice')
    else if (givenId !== undefined) taken.add(givenId)
    branch.id = givenId ?? newId()
  }
}

function resolveSenders({ reader, nodes, messageConditions }: DocumentReading): void {
  for (const { path, condition, nodeId, clientNodeId } of messageConditions) {
    if (nodeId === undefined && clientNodeId === undefined) continue
    const found = nodes.find(({ node }) =>
      nodeId === undefined ? node.client_node_id === clientNodeId : node.id === nodeId,
    )?.node
    const field = `${path}.${nodeId === undefined ? 'client_node_id' : 'sending_node_id'}`
    if (!found) reader.report(field, 'names no node of this journey')
    else if (!templateChannelOf(found.kind as NodeKind))
      reader.report(field, 'must name a node that sends push, email or SMS')
    else condition.sending_node_id = found.id
  }
}
