// The nodes of a journey, each by the rules of its kind. Fields that a kind does not have are dropped.

import { type JourneyNode, NODE_DEFINITIONS, NODE_KINDS, type NodeKind } from '../nodes/kinds.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading } from './reading.ts'

export const MAX_NODES = 500
/** Nodes with branches inside each other. */
export const MAX_NESTING = 10
const MAX_CLIENT_ID = 255
const MAX_ANNOTATION = 255

export function readNodes(reading: DocumentReading, path: string, value: unknown, depth = 0): JourneyNode[] {
  const { reader } = reading
  // Each item is a node or a problem, so one more than the limit is enough to refuse the list.
  const items = reader.list(path, Array.isArray(value) ? value.slice(0, MAX_NODES + 1) : value)
  if (depth > MAX_NESTING && items.length > 0) {
    reader.report(path, `is nested deeper than ${MAX_NESTING} branching nodes`)
    return []
  }
  return items.flatMap(([path, item]) => {
    if (reading.nodes.length === MAX_NODES)
      reader.report(path, `is one node too many; a journey has at most ${MAX_NODES}`)
    return reading.nodes.length >= MAX_NODES ? [] : (readNode(reading, path, item, depth) ?? [])
  })
}

function readNode(reading: DocumentReading, path: string, value: unknown, depth: number): JourneyNode | undefined {
  const { reader } = reading
  const fields = reader.object(path, value)
  const kind = fields && reader.oneOf(`${path}.kind`, fields.kind, NODE_KINDS)
  if (!fields || !kind) return undefined
  const node = readCommonFields(reading, path, fields, kind)
  const givenId = isPresent(fields.id) ? reader.uuid(`${path}.id`, fields.id) : undefined
  reading.nodes.push({ path, node, givenId })
  const ownFields = NODE_DEFINITIONS[kind].read({
    reading,
    path,
    fields,
    node,
    readNodes: (path, nodes) => readNodes(reading, path, nodes, depth + 1),
  })
  return Object.assign(node, ownFields) as JourneyNode
}

const readCommonFields = ({ reader }: DocumentReading, path: string, fields: Fields, kind: NodeKind) => ({
  // Assigned when all nodes are known.
  id: '',
  kind,
  ...(isPresent(fields.client_node_id) && {
    client_node_id: reader.text(`${path}.client_node_id`, fields.client_node_id, MAX_CLIENT_ID) as string,
  }),
  ...(isPresent(fields.annotation) &&
    fields.annotation !== '' && {
      annotation: reader.text(`${path}.annotation`, fields.annotation, MAX_ANNOTATION) as string,
    }),
})
